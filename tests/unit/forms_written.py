"""Texts for the exit gate: what must survive it as it is, what may not, and addresses."""

SURVIVES = """\
driver 570.124.06, 470.82.01, 535.161.08
Driver Version: 570.124.06   CUDA Version: 12.8
NCCL 2.27.5.1
NCCL version 2.21.5+cuda12.4
nvidia-cublas==13.1.1.3
nvidia-cublas-cu12==12.8.4.1
nvidia-curand==10.4.0.35
nvidia-cuda-cccl==13.3.5.0.6
[pip3] nvidia-curand-cu11==10.2.1.217
nvidia-curand-cu11        10.2.1.217
curand: 10.2.1.217
nvidia_curand_cu11-10.2.1.217-py3-none-manylinux1_x86_64.whl
curand >= 10.2.1.217
version 10.3.7.77
{"version": "10.2.1.217", "name": "curand"}
cudnn 9.10.2.21
12.6.3.3
12.0.4.66
vllm: 0.10.1/0.10.1.1
xre: 5.37.0.0
libfoo.so.1.2.3.4
v1.2.3.4
5.15.153.1-microsoft-standard-WSL2
Linux-5.15.0-1.2.3.4
ROCm version : 6.4.0.0-47-73dae9c
compressed_tensors: ==0.15.0.1
upgraded the package from 9.1.0.70 to 9.5.1.17
torch 2.9.1+cu128
build 20561.58
tiktoken==0.14.0
GPU 00000000:05:00.0, 0000:3b:00.0, busId 47000
16GiB 79.1% 81559MiB 2.5e-05
2025-01-30 18:11:34.707542570 [E130 18:11:34 ProcessGroupGloo.cpp:143]
[12:34:56] 01:02:03:04 took 00:00:12
at 0x7f3a5c001230 in std::vector<int>::at c10::cuda a::b dead::beef fe::add
x[::2] x[1024::2] x[2048::64] x[a::b] lambda: ::
00000010: 48 8b 05 d1 2f 00 00 fe 80 00 11
INFO 01-30 [core.py:790] (EngineCore pid=123) [rank0]:[W130 tid 140234] gfx90a sm_90 NV18 mlx5_0
/dev/nvidia0 /usr/lib/x86_64-linux-gnu/libcuda.so.1 /opt/conda/lib/python3.12/site-packages/torch/__init__.py
from google.protobuf.internal import enum_type_wrapper; host.docker.internal:8000 torch.internal.x a.corpus
/root/.cache/huggingface /home/ubuntu/x C:\\Users\\Public\\x
127.0.0.1 127.0.1.1:80 0.0.0.0:8000 255.255.255.255 255.255.240.0 239.1.2.3 0.0.0.0/0 10.0.0.0/8 ::1 [::]:8000
root@localhost:~# localhost:8000 http://localhost:8000/v1
tokens=8192 max_num_batched_tokens=2048 num_tokens: 512 KV tokens token_ids=[1, 2] pad_token_id=0
tokenizer='Qwen/Qwen3-8B' --tokenizer Qwen/Qwen3-8B --max-tokens 512 --tokenizer-mode auto
eos_token='</s>' bos_token="<s>" pad_token: abc1 image_token=<image> next_token: abcdefgh1 detokenize=True
token: None token=null token: True token=False token: 1234 token: 12.5ms "token": "the"
api_key=None api_key='' password=None "api_key": null, hf_token=hf_token, token=self.token, api_key=os.getenv("K")
password: str = None; token: Optional[str] --hf-token HF_TOKEN HF_TOKEN=$HF_TOKEN --api-key EMPTY
--served-model-name qwen --key=value mode=auto hf_overrides={} hf_transformers_backend sk-learn task-0123456789abcdef
---------------Inter-token Latency----------------
commit 271856d0c1f2e3d4a5b6c7d8e9f0a1b2c3d4e5f6
sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
https://github.com/vllm-project/vllm/issues/1?tab=readme git@github.com:sgl-project/sglang.git
pip install foo @ git+https://github.com/a/b@v0.9.0 image@sha256:abcd memcpy@GLIBC_2.14 @torch.compile
q@k.transpose(-2, -1) x = a@b hostname = socket.gethostname() hostname: localhost
[rank0]:2025 [W306 TCPStore.cpp:358] [core.py:790]: 12345
docker run -u 1000:1000 x; docker run --user root:root x; curl http://localhost:8000/v1 -u user; curl -u a:$PASS x
  -u $(id -u):$(id -g) \\
PWD=/root OLDPWD=/data pwd=$(pwd) PWD=~ pwd=os.getcwd() PWD=C:\\Windows
threading.local <class '_thread._local'> werkzeug.local torch.private a.home rc.local settings.local.json /etc/x.local
localhost.localdomain kubernetes.default.svc.cluster.local svc.cluster.local
cuda-toolkit-12-8 libnvinfer-10-0-1-6 node-1-2-3-4 8-8-8-8 10-20-30-40.tar.gz layers 0-1-2-3 2025-01-30-12
9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
/opt/conda/envs/Foo1/lib/Python3/Bar22/site/packages/Torch/Utils/Data/DataLoader
abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+/abcdefghijklmnopqrstuvwxyz
password is required: password was not given; the passphrase is empty
api key required, access key not found; API key configuration_not_found_here
username: str = None; username=username, "username": null; waiting for user input from x
Serial Number: Not Specified; serial8250: ttyS0 at I/O; serial: 8250/16550 driver
SerialNumber: 0000:3b:00.0; serial: 115200
npm_config_cache=/x npm_package r8_x AKIDx xai-grok pypi-server gsk_x nvapi-x hvs.x AIzaX
-----END RSA PRIVATE KEY-----
Serial Number: 0000000000000; Unique ID: 0x0; Serial Number 00-00-00-00-00-00-00-00; gid=44(video)
{"name": "pad_token", "value": "<pad>"} {"name": "max_tokens", "value": 4096} {"name": "tokenizer", "value": "a/b1"}
HF_TOKEN is not set; please set HF_TOKEN first
MAX_TOKENS 4096; EOS_TOKEN 2; HF_TOKEN HF_HOME=/x1; export HF_TOKEN=$HF_TOKEN; HF_TOKEN environment
uid=0(root) gid=0(root) groups=0(root); ssh-keygen -t rsa AAAA; enx0 ff02::1%eth0 std::fe80::x
https://huggingface.co/Qwen/Qwen3-8B https://download.pytorch.org/whl/cu128 http://127.0.0.1:18580""".splitlines()

# text, what may not be left of it, what must be left
SECRETS = [
    ("export X=hf_AbCdEfGhIjKlMnOpQrStUvWxYz012345", "hf_AbCd", "export X=<token-"),
    ("ghp_0123456789abcdefABCDEF0123456789abcd", "ghp_", ""),
    ("gho_0123456789abcdefABCDEF0123456789abcd", "gho_", ""),
    ("github_pat_11ABCDEFG0abcdefghijkl_mnopqrstuvwxyz", "github_pat", ""),
    ("glpat-abcdEFGH1234ijklMNOP", "glpat", ""),
    ("key sk-proj-abcdEFGH1234ijklMNOP5678 end", "sk-proj", " end"),
    ("OpenAI sk-abcdEFGH1234ijklMNOP5678", "sk-abcd", "OpenAI "),
    ("AKIAIOSFODNN7EXAMPLE ASIAIOSFODNN7EXAMPLE", "IOSFODNN7", ""),
    ("xoxb-123456789012-abcdefABCDEF", "xoxb", ""),
    ("jwt eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc_DEF-123 end", "eyJ", " end"),
    ("Bearer abcdef0123456789", "abcdef01", "Bearer <token-"),
    ("Authorization: Basic dXNlcjpwYXNz", "dXNl", "Authorization: Basic <token-"),
    ("curl -H 'Authorization: Bearer abc' http://x", "abc", "' http://x"),
    ("Authorization: AWS4 Credential=a1/b2, Signature=c3d4", "c3d4", "Authorization: <token-"),
    ("Cookie: session=deadbeef01; csrf=zz9", "zz9", "Cookie: <token-"),
    ("HF_TOKEN=mytokenvalue", "mytokenvalue", "HF_TOKEN=<token-"),
    ("WANDB_API_KEY=0123456789abcdef0123456789abcdef01234567", "0123456789ab", "WANDB_API_KEY=<token-"),
    ("CLIENT_SECRET=s3cr3t AWS_SECRET_ACCESS_KEY=wJalrX/b+c= x", "wJalr", " x"),
    ("DB_PASSWORD=hunter2 password: correcthorse passwd = 'a b c'", "horse", ""),
    ("password='open sesame', port=1", "sesame", ", port=1"),
    ("vllm serve m --api-key X7 --port 1", "X7", "vllm serve m --api-key <token-"),
    ("--hf-token X7 --token=Y8 --password Z9", "X7", "--password <token-"),
    ('vllm serve m --api-key "A X7y" --port 1', "X7y", "--port 1"),
    ('command: ["--model","x","--api-key","X7y"]', "X7y", '"--model","x"'),
    ("vllm serve m --kv-transfer-config.password X7y", "X7y", "vllm serve m"),
    ("api_key=['X7y1', 'X7y2'], port=1", "X7y2", ", port=1"),
    ("sshpass -p X7y ssh h vllm serve m", "X7y", "vllm serve m"),
    ("['--api-key', 'X7y', '--port']", "X7y", "', '--port']"),
    ('{"api_key": "X7y", "a": 1}', "X7y", '", "a": 1}'),
    (r'"{\"api_key\": \"X7y\"}"', "X7y", r'\"}"'),
    ("{'token': 'abcd1234', 'b': 2}", "abcd1234", "', 'b': 2}"),
    ("api_key=['X7y'], api_key=Q8w)", "X7y", ")"),
    ("auth_token: zzz\nx-api-key: yyy", "zzz", "\nx-api-key: <token-"),
    ("http://bob:pw1@proxy.example.com:3128/a", "pw1", "@proxy.example.com:3128/a"),
    ("https://h.io/x?a=1&token=T0k&api_key=K3y&sig=S1g#f", "T0k", "https://h.io/x?a=1&token=<token-"),
    ("-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabcd\n-----END RSA PRIVATE KEY-----\n", "MIIE", "KEY-----\n<key-"),
    ("mail bob.b@lab.example.edu.", "bob", "mail <email-"),
    ("bob@node7:~# nvidia-smi", "bob", ":~# nvidia-smi"),
    ("[root@node7 ~]# ls", "node7", "[root@<host-"),
    ("(base) bob@node7:/data$ ls", "node7", ":/data$ ls"),
    ("bob@node7$ ls", "bob", "$ ls"),
    ("ssh -p 22 bob@node7 uptime", "bob@node7", " uptime"),
    ("Hostname: node7", "node7", "Hostname: <host-"),
    ("hostname=node7 HOSTNAME=node7 host_name: node7", "node7", ""),
    ("Linux node7 5.15.0-91-generic #101-Ubuntu SMP", "node7", " 5.15.0-91-generic #101-Ubuntu SMP"),
    ("node7:1263985:1263985 [0] NCCL INFO x", "node7", ":1263985:1263985 [0] NCCL INFO x"),
    ("ip-10-0-1-23.ec2.internal ready", "10-0-1", " ready"),
    ("connect to node7.dc3.internal failed", "node7", "connect to <host-"),
    ("gpu7.corp:29500 web.lan, x.intranet.", "gpu7", ":29500 <host-"),
    ("[c10d] failed to connect to [node7]:29500", "node7", "]:29500"),
    ("--rdzv_endpoint=node7:29500 --master-addr node7", "node7", ":29500 --master-addr <host-"),
    ("SECRET_KEY_BASE=abc123", "abc123", "SECRET_KEY_BASE=<token-"),
    ("tcp://node7:29500 MASTER_ADDR=node7 http://node7:8000/v1", "node7", ":8000/v1"),
    ("/home/bob/x /Users/bob/x C:\\Users\\bob\\x C:\\\\Users\\\\bob\\\\x", "bob", "/home/<user-"),
    ("HOME=/home/bob", "bob", ""),
    ("/home2/bob/x and /mnt/users/bob/x", "bob", "/x"),
    ("Jan 30 18:11:34 node7 kernel: NVRM", "node7", " kernel: NVRM"),
    ("2025-01-30T18:11:34.707+08:00 node7 sshd[12]: x", "node7", " sshd[12]: x"),
    ("nodeName: node7", "node7", "nodeName: <host-"),
    ("USER=bob LOGNAME=bob", "bob", "USER=<user-"),
    ("alice, /data/people/alice/m and /scratch/alice", "alice", ""),
    ("on gpu07, GPU07.cluster.corp.cn, trainbox.a.b and rank0_trainbox_1.log", "gpu07", "on <host-"),
    ("trainbox.a.b TrainBox.log", "rain", ""),
    ("GPU-8a56a4bc-e184-a047-2620-be19fdf913d5", "8a56", "GPU-"),
    ("MIG-8a56a4bc-e184-a047-2620-be19fdf913d5", "be19", "MIG-"),
    ("mac 0c:42:a1:b2:c3:d4 or 0C-42-A1-B2-C3-D4", "a1:b2", "mac 02:d1:a9:"),
    ("inet6 fe80::e42:a1ff:feb2:c3d4/64", "feb2", "inet6 fe80::"),
    ("[2400:3200:baba::1]:443 and fd12:3456:789a::1%eth0", "baba", "]:443 and fd00:"),
    ("localGid fd00:0:0:0:0:0:1:ff22 remoteGidsfd00:0:0:0:0:0:1:ff1f", "ff1f", "remoteGidsfd00:db8:"),
    ("nvapi-AbCdEfGhIjKlMnOpQrStUvWx-_ab12", "nvapi", ""),
    ("key AIzaSyA1234567890abcdefghijklmnopqrstuv end", "AIza", " end"),
    ("ya29.a0AfH6SMBx-abcdefghijklmnop_1234567890", "a0Af", ""),
    ("dckr_pat_AbCdEf0123456789_-AbCdEf01234 npm_AbCdEf0123456789AbCdEf0123456789AbCd", "AbCd", ""),
    ("pypi-AgEIcHlwaS5vcmcCJDA0ZTk2 hvs.CAESIAbCdEf0123456789AbCd", "AgEI", ""),
    ("gsk_AbCdEf0123456789AbCdEf0123456789AbCd xai-AbCdEf0123456789AbCdEf0123456789", "AbCd", ""),
    ("r8_AbCdEf0123456789AbCdEf0123456789AbCd", "AbCd", ""),
    ("LTAI5tAbCdEf0123456789AB AKID1234567890abcdefABCDEF1234567890", "0123456789", ""),
    ("wandb: API key 0123456789abcdef0123456789abcdef01234567", "0123456789", "API key <token-"),
    ("curl -s http://x -u bob:pw1secret", "pw1", "curl -s http://x -u <user-"),
    ("curl --user 'bob:pw1secret' http://x", "bob", "' http://x"),
    ("curl http://x \\\n  -u bob:pw1secret", "pw1", "  -u <user-"),
    ("pwd=pw1secret Server=db;Uid=x;Pwd=pw1secret;", "pw1", ";Pwd=<token-"),
    ("machine h login bob password pw1secret", "bob", "password <token-"),
    ("the password is pw1secret", "pw1", "password is <token-"),
    ("uid=1001(bob) gid=1001(bob) groups=1001(bob),27(sudo)", "bob", "),27(sudo)"),
    ("sudo:    bob : TTY=pts/0 ; USER=root", "bob", " : TTY=pts/0"),
    ("Accepted publickey for bob from 8.8.8.8 port 22", "bob", " port 22"),
    ("session opened for user bob by (uid=0)", "bob", " by (uid=0)"),
    ("username: bob", "bob", "username: <user-"),
    ("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ bob@node7", "bob@node7", "ssh-ed25519 <key-"),
    ("x MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj", "MIIE", "x <key-"),
    (r'{"k": "-----BEGIN PRIVATE KEY-----\\nMIIEvQIB\\n-----END PRIVATE"}', "MIIE", '-----END PRIVATE"}'),
    ("-----BEGIN PGP PRIVATE KEY BLOCK-----\nlQOYBGD1", "lQOY", "BLOCK-----\n<key-"),
    ("ssh bob@gpu-17.prod.acme.local; http://gpu-17.prod.acme.local:8000", "acme", ":8000"),
    ("https://wiki.acme.home.arpa/x gpu17.localnet web.acme.priv", "acme", "/x <host-"),
    ("https://node7:8443/v1", "node7", ":8443/v1"),
    ("ec2-54-12-3-4.compute-1.amazonaws.com host-10-0-1-2", "-12-3", ""),
    ("10-0-1-2.internal and 10-0-1-2.default.pod.cluster.local", "10-0", "<host-"),
    ("enx0c42a1b2c3d4: link up", "42a1", ": link up"),
    ("    Serial Number                     : 1320920012345", "13209", "     : <serial-"),
    ("Device Serial Number 48-b0-2d-ff-ff-aa-bb-cc", "b0-2d", "Number <serial-"),
    ("GPU[0]\t\t: Unique ID: 0xa1b2c3d4e5f60718", "a1b2", "Unique ID: <serial-"),
    ("- name: HF_TOKEN\n  value: X7y\n- name: A", "X7y", "\n- name: A"),
    ('{"name": "API_KEY", "value": "X7y"}', "X7y", '"value": "<token-'),
    ('<property name="db.password" value="X7y"/>', "X7y", '"/>'),
    ("setenv HF_TOKEN wordy; export API_KEY wordy", "wordy", "; export API_KEY <token-"),
    ("| HF_TOKEN | X7yabc | MY_SECRET | X7yabc | DB_PASSWORD | X7yabc |", "X7y", "| HF_TOKEN | <token-"),
    ("AWS_SECRET_ACCESS_KEY X7yabc\tSECRET_KEY X7yabc\tOPENAI_API_KEY X7yabc", "X7y", "ACCESS_KEY <token-"),
    ("Asset Tag: ACME-123", "ACME", "Asset Tag: <serial-"),
    ("Using [0]eth0:fe80::5054:ff:fe12:3456%eth0<0>", "5054", "%eth0<0>"),
    ("addr:fe80::5054:ff:fe12:3456, bond0:fe80::5054:ff:fe12:3456", "5054", ", bond0:fe80::db8"),
    ("GID 0000:0000:0000:0000:0000:ffff:0a00:0117", "0a00:0117", "GID 0000:0000:0000:0000:0000:ffff:0a"),
]  # fmt: skip

ADDRESSES = """\
tcp://10.0.0.1:29500
MASTER_ADDR=192.168.1.10
NCCL INFO Bootstrap : Using eth0:172.17.0.2<0>
NET/Socket : Using [0]eth0:10.12.1.7<0>
inet 10.2.1.217/24 brd 10.2.1.255
connect to 12.6.3.3
Connecting to existing Ray cluster at address: 10.0.0.33:6379...
{'node:172.16.0.33': 0.001}
--rdzv_endpoint=10.0.0.12 test.py
trying to connect to (10.0.0.12, 29400).
10.0.0.10: node10:1307367:1307586 [0] NCCL INFO x
from 203.0.113.9 to 10.2.1.217
http://12.6.3.3/v1
node7  10.2.1.217
[::ffff:10.0.0.1]:29500
worker 47.98.12.33 died
169.254.3.4 100.64.1.2""".splitlines()
