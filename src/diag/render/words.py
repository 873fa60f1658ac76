"""The words of the reports themselves, in both languages; those of rules stand with the rules."""

from __future__ import annotations

from diag.facts import MatrixVerdict
from diag.report import Report, ReportedEvidence, ReportedFinding

SPEAKERS_SHOWN = 8
"""Processes that are named of those that said something."""

WORDS = {
    "en": {
        "pass": "pass",
        "warn": "warn",
        "fail": "fail",
        "incomplete": "incomplete",
        "error": "error",
        "warning": "warning",
        "info": "info",
        "high": "high",
        "medium": "medium",
        "low": "low",
        "confidence": "confidence",
        "because": "cause",
        "times": "{count} times",
        "evidence": "evidence",
        "inferred": "inferred",
        "fix": "fix",
        "verify": "verify",
        "safe": "safe",
        "disruptive": "disruptive",
        "manual": "manual",
        "machine": "Machine",
        "versions": "Versions",
        "note": "note",
        "way": "way",
        "refused": "{rule} refuses {names}",
        "several": "several values of {name} are told: name the one that is meant",
        "undecided": "nothing decides on {names}",
        "cut": "the search was cut short: not every set that might grant this was judged",
        "ways": "ways: {count}",
        "no ways": "no way is known",
        "try": "the nearest sets that work: diag matrix suggest with the same words",
        "no way": "no set is known that grants {wish}",
        "overlay": "rows of the overlay hold: {names}",
        "newest": "; the newest release that is known is {version}",
        "known-bad": "known bad",
        "verified": "verified",
        "reported": "reported",
        "metadata-conflict": "conflict with metadata",
        "allowed-by-metadata": "allowed by metadata",
        "unknown": "unknown",
        "no findings": "no findings",
        "finding": "finding",
        "findings": "findings",
        "judged": "{passed} passed, {failed} failed, {skipped} skipped, {elsewhere} not applicable, {crashed} crashed",
        "crashed": "crashed",
        "broken": "broken",
        "open": "not answered",
        "between": "{ranks} ranks (nodes: {nodes}), {backend} {library} {version}, {dtype}, {device} ({tool})",
        "pairs": "pairs, {size}: µs from source (row) to target (column) and a short answer back, the least of "
        "{passes} passes (! slow, ? wrong)",
        "ranks": "ranks, µs: the same work alone (least of the passes), and the stay in a call that each enters when "
        "ready (median; who comes late stays least)",
        "more ranks": "… {count} others are left out",
        "nobody": "nobody is to blame: no rank, link or interface is slow; found from {times} times on (small "
        "messages: {small}; pairs by {apart} µs at least){late}; {measured} measurements of {possible} ordered pairs",
        "late": ", a late rank from {share} of a call on",
        "noisy": "noisy",
        "wrong": "WRONG",
        "others": "others used {share} of the processors",
        "more rows": "… {count} smaller ones in which nothing is wrong are left out",
        "of finding": "finding {rank}",
        "measurements": "Measurements",
        "compared": "Compared with what is known of such devices:",
        "compared with": "{op}, {ranks} ranks: {compared} of {results} results; {model} {baseline} "
        "({standing}{differs}), this {value} at {size} = {percent}",
        "compared with nothing": "{op}, {ranks} ranks: compared with nothing: {why}",
        "lacks device": "the devices are not told",
        "lacks model": "no reference for {device}",
        "lacks row": "no reference for {ranks} {model} (nodes: {nodes}) at these sizes",
        "standing pass": "somebody's threshold",
        "standing measured": "measured elsewhere",
        "standing user": "published by a user",
        "standing vendor": "published by a maker or a cloud",
        "standing seed": "a single field report",
        "differs size": ", of another size",
        "differs link": ", and it is not told how the devices are joined here",
        "differs nodes": ", and it is not told on how many nodes this ran",
        "differs dtype": ", of another type",
        "units": "µs of the slowest rank, GB/s",
        "compared earlier": "Compared with {file}: {count} of {all} results{slowest}{noisy}",
        "slowest": "; the slowest takes {ratio} times as long as then ({what})",
        "not comparable": "; {count} were measured alike and are too noisy",
        "no torch": "(--python PATH names the interpreter that has it)",
        "not isolated": "the time was over before it was clear who is to blame: --budget gives more",
        "not measured": "nothing was measured between ranks: {why}",
        "not planned": "nothing is told of memory: {why}",
        "memory": "Memory in GiB as torch tells it, and what could be allocated",
        "memory shared": "its memory is the host's",
        "memory bound mapping": "no more than {limit} can be mapped",
        "memory bound group": "control group of {limit}, {left} of it left alone",
        "memory bound host": "{left} of the host's left alone",
        "memory bound time": "it took too long",
        "between processes": "no accelerator was seen: measured was between processes of the host, which --device cpu "
        "asks for",
        "not tested": "no device was tested: {why}",
        "not looked at": "the operators of no device were looked at: {why}",
        "looked": "Operators of torch: {detectors}; milliseconds and bytes of one call",
        "detector failed": "{what}: {why}",
        "steps left": "{count} steps or operators were not run: no time was left",
        "detector static": "the dispatcher's table of {count}",
        "detector dynamic": "{count} under the profiler",
        "detector timing": "the launches of {count}",
        "detector untold": "Not told by {detector}:",
        "more operators": "  … {count} more",
        "costs": "Steps (B requests, a vocabulary of V) and what operators on the CPU cost them; tokens/s at most:",
        "placed missing": "no kernel",
        "placed fallback": "falls back",
        "placed backend-fallback": "falls back, as all without a kernel",
        "placed copies": "copies to the host",
        "placed grows": "launch grows like a copy",
        "tested": "Devices: GB/s of memory (bytes read and written) and of links to the host (pinned, pageable), "
        "TFLOPS of matrix products, and how many operators answer as the host does in double precision",
        "ended": "{error} ({phase})",
        "line": "A call takes α + bytes / algbw (µs, GB/s), on the line that leaves the least residual:",
        "no line": "refused: {why}",
        "steps": "A decode step is weights / (ranks x bandwidth) + {calls} all_reduce{mode}, and no less:",
        "weights": "  weights: {weights} GB ({from})",
        "bandwidth": "  memory bandwidth of a device: {gbps} GB/s ({from})",
        "bandwidth table": "as its maker states it",
        "bandwidth measured": "measured",
        "weights given": "as given",
        "weights estimated": "estimated from the shape of the model",
        "limit latency": "latency decides",
        "limit bandwidth": "bandwidth decides",
        "limit both": "latency and bandwidth",
        "assumed": "calls as between {ranks} ranks",
        "interpolated": "between two measured sizes",
        "extrapolated": "beyond the measured sizes",
        "at least": "noisy: at least this",
        "exceeded": "the step was not measured with these calls, or not on these ranks",
        "upper bound": "  Calls are the library's in a loop: an upper bound where an engine has kernels of its own.",
        "untouched": "not judged",
        "ignored": "left out",
        "follows": "a consequence of finding {rank}, which comes first",
        "waived": "waived until {until}: {reason}",
        "waiver ended": "its waiver ended on {until}: {reason}",
        "counted": "{count} waived",
        "time bound": "the time bound was reached before all of {stopped} was read",
        "no accelerator": "no accelerator was seen{scopes}: whether a model can be served on one was not judged",
        "damaged": "not all of it could be read: {lost}",
        "no interpreter": "the interpreter did not answer, so its packages were not judged",
        "bus alone": "only the bus or device files show accelerators{scopes}: whether a driver answers was not told",
        "names alone": "of the accelerators{scopes} only names were told: not their state, nor that torch can use them",
        "unexplained": "an error that no rule knows stands in the text ({place}: {quote})",
        "no cause": "no rule names the cause of what looks like an error in it ({place}: {quote})",
        "no cause behind": "what failed is told, and no rule names why ({place}: {quote})",
        "failed silently": "{program} failed ({end}), and neither its output nor the kernel tells why",
        "looks like errors": "First lines that look like errors",
        "templates": "What the text consists of",
        "report it": "A block to paste into an issue, with names and addresses replaced: --format issue",
        "expectation": "what was expected of the machine was not judged: {reason}",
        "nothing judged": "nothing in it could be judged by any check",
        "nothing known": "nothing in it is known to any probe",
    },
    "zh": {
        "pass": "通过",
        "warn": "警告",
        "fail": "不通过",
        "incomplete": "未能判定",
        "error": "错误",
        "warning": "警告",
        "info": "提示",
        "high": "高",
        "medium": "中",
        "low": "低",
        "confidence": "置信度",
        "because": "原因",
        "times": "共 {count} 次",
        "evidence": "证据",
        "inferred": "推断",
        "fix": "修复",
        "verify": "验证",
        "safe": "安全",
        "disruptive": "会中断服务",
        "manual": "需人工判断",
        "machine": "机器",
        "versions": "版本",
        "note": "说明",
        "way": "方案",
        "refused": "{rule} 排除 {names}",
        "several": "{name} 有多个取值：请指明其中一个",
        "undecided": "无法判定 {names}",
        "cut": "搜索提前结束：并非所有可能满足要求的组合都已评估",
        "ways": "方案：{count}",
        "no ways": "没有已知方案",
        "try": "最接近的可用组合：用同样的参数运行 diag matrix suggest",
        "no way": "没有已知的版本组合可以满足 {wish}",
        "overlay": "采用了覆盖目录中的条目：{names}",
        "newest": "；已知的最新版本是 {version}",
        "known-bad": "已知不可用",
        "verified": "已验证",
        "reported": "有报告可用",
        "metadata-conflict": "与元数据冲突",
        "allowed-by-metadata": "元数据允许",
        "unknown": "未知",
        "no findings": "未发现问题",
        "finding": "项发现",
        "findings": "项发现",
        "judged": "{passed} 项通过，{failed} 项不通过，{skipped} 项跳过，{elsewhere} 项不适用，{crashed} 项崩溃",
        "crashed": "检查崩溃",
        "broken": "出错",
        "open": "未能回答",
        "between": "{ranks} 个 rank（节点数：{nodes}），{backend} {library} {version}，{dtype}，{device}（{tool}）",
        "pairs": "配对，{size}：从源（行）到目标（列）并收到简短应答的 µs，取 {passes} 轮最小值（! 慢，? 数据错误）",
        "ranks": "各 rank，µs：独自完成同样的工作（各轮最小值），以及在调用中的停留时间（就绪即进入；中位数，"
        "迟到者停留最短）",
        "more ranks": "…… 省略其余 {count} 个",
        "nobody": "未发现责任方：没有变慢的 rank、链路或网卡；慢到 {times} 倍（小消息 {small} 倍，"
        "配对至少慢 {apart} µs）即可发现{late}；共 {measured} 次测量，有序配对 {possible} 个",
        "late": "，rank 迟到达一次调用的 {share} 即可发现",
        "noisy": "不稳定",
        "wrong": "结果错误",
        "others": "其他进程占用处理器的 {share}",
        "more rows": "…… 省略 {count} 个较小且无异常的结果",
        "of finding": "见第 {rank} 项",
        "measurements": "测量结果",
        "compared": "与此类设备的已知结果对比：",
        "compared with": "{op}，{ranks} 个 rank：{results} 个结果中的 {compared} 个；{model} {baseline}"
        "（{standing}{differs}），此处 {size} 时 {value} = {percent}",
        "compared with nothing": "{op}，{ranks} 个 rank：未与任何结果对比：{why}",
        "lacks device": "未说明是什么设备",
        "lacks model": "没有 {device} 的参考值",
        "lacks row": "没有 {ranks} 个 {model}（节点数：{nodes}）在这些大小下的参考值",
        "standing pass": "他人生产环境的阈值",
        "standing measured": "在其他机器上的实测值",
        "standing user": "用户公布的结果",
        "standing vendor": "厂商或云平台公布的结果",
        "standing seed": "单份现场报告",
        "differs size": "，大小不同",
        "differs link": "，本机的互联方式未知",
        "differs nodes": "，节点数未知",
        "differs dtype": "，数据类型不同",
        "units": "最慢 rank 的 µs，GB/s",
        "compared earlier": "与 {file} 比较：{all} 项结果中的 {count} 项{slowest}{noisy}",
        "slowest": "；最慢的一项耗时为当时的 {ratio} 倍（{what}）",
        "not comparable": "；另有 {count} 项测量条件相同，但结果不稳定，无法比较",
        "no torch": "（用 --python PATH 指定装有它的解释器）",
        "not isolated": "时间用尽，尚未定位到责任方：用 --budget 延长",
        "not measured": "rank 之间未测得任何结果：{why}",
        "not planned": "没有显存结果：{why}",
        "memory": "torch 报告的显存（GiB）与实际可分配量",
        "memory shared": "与主机共用内存",
        "memory bound mapping": "最多可映射 {limit}",
        "memory bound group": "控制组上限 {limit}，保留 {left} 未占用",
        "memory bound host": "主机保留 {left} 未占用",
        "memory bound time": "耗时过长，提前结束",
        "between processes": "未发现加速器：测得的只是主机进程之间的通信（如确需测量请用 --device cpu）",
        "not tested": "没有测试任何设备：{why}",
        "not looked at": "没有检查任何设备的算子：{why}",
        "looked": "torch 算子：{detectors}；单次调用的毫秒数与字节数",
        "detector failed": "{what}：{why}",
        "steps left": "{count} 个步骤或算子未运行：时间不足",
        "detector static": "调度表中的 {count} 个",
        "detector dynamic": "分析器下运行的 {count} 个",
        "detector timing": "{count} 个的启动耗时",
        "detector untold": "{detector} 未能判断：",
        "more operators": "  … 另有 {count} 个",
        "costs": "各步骤（B 个请求，词表 V）及 CPU 算子的开销；tokens/s 为上限：",
        "placed missing": "无内核",
        "placed fallback": "回退到 CPU",
        "placed backend-fallback": "回退到 CPU（无内核算子的统一回退）",
        "placed copies": "拷回主机计算",
        "placed grows": "启动耗时如拷贝般增长",
        "tested": "设备：显存带宽（读写合计）与主机链路带宽（锁页、可分页），单位 GB/s；矩阵乘，单位 TFLOPS；"
        "与主机双精度结果一致的算子数",
        "ended": "{error}（{phase}）",
        "line": "一次调用耗时 α + 字节数 / algbw（µs、GB/s），按残差最小的直线拟合：",
        "no line": "拟合不成立：{why}",
        "steps": "解码步 = 权重 / (rank 数 x 带宽) + {calls} 次 all_reduce{mode}，实际只会更长：",
        "weights": "  权重：{weights} GB（{from}）",
        "bandwidth": "  单设备显存带宽：{gbps} GB/s（{from}）",
        "bandwidth table": "厂商标称值",
        "bandwidth measured": "实测",
        "weights given": "用户给出",
        "weights estimated": "按模型结构估算",
        "limit latency": "受时延限制",
        "limit bandwidth": "受带宽限制",
        "limit both": "时延与带宽共同限制",
        "assumed": "按 {ranks} 个 rank 之间的耗时计",
        "interpolated": "由两个实测大小插值",
        "extrapolated": "超出实测范围",
        "at least": "不稳定：至少为此值",
        "exceeded": "该步不是以这些通信或在这些 rank 上测得",
        "upper bound": "  通信时间为循环调用通信库所得；若引擎使用自带内核，则为上限。",
        "untouched": "未判定",
        "ignored": "已排除的规则",
        "follows": "是第 {rank} 项的后果，请先处理该项",
        "waived": "已豁免至 {until}：{reason}",
        "waiver ended": "豁免已于 {until} 到期：{reason}",
        "counted": "其中 {count} 项已豁免",
        "time bound": "在读完 {stopped} 之前已达到时间上限",
        "no accelerator": "未发现加速器{scopes}，因此无法判定能否在加速器上运行模型",
        "damaged": "未能读取全部内容：{lost}",
        "no interpreter": "解释器没有应答，因此未能检查其中的软件包",
        "bus alone": "仅总线或设备文件显示有加速器{scopes}，驱动是否应答未知",
        "names alone": "仅得知加速器{scopes}的名称，其状态以及 torch 能否使用均未知",
        "unexplained": "文本中有规则尚不认识的错误（{place}：{quote}）",
        "no cause": "其中有疑似错误的行，但没有规则能给出原因（{place}：{quote}）",
        "no cause behind": "只知道有失败，没有规则能给出原因（{place}：{quote}）",
        "failed silently": "{program} 失败（{end}），其输出与内核均未说明原因",
        "looks like errors": "最先出现的疑似错误行",
        "templates": "文本的组成",
        "report it": "可直接粘贴到 issue 的文本（名称与地址已替换）：--format issue",
        "expectation": "无法判定机器是否符合预期：{reason}",
        "nothing judged": "其中没有任何检查可以判定的内容",
        "nothing known": "其中没有任何探针可以识别的内容",
    },
}


def repeated(evidence: ReportedEvidence, words: dict[str, str]) -> str:
    """How often something was said and by whom, empty where it was once."""
    if evidence.times < 2:
        return ""
    said = words["times"].format(count=evidence.times)
    shown = ", ".join(evidence.speakers[:SPEAKERS_SHOWN])
    more = " …" if len(evidence.speakers) > SPEAKERS_SHOWN else ""
    return f" ({said}{': ' + shown + more if shown else ''})"


def counted(report: Report) -> str:
    """How many findings there are, and how many of them are waived, in the report's language."""
    words = WORDS[report.language]
    noun = words["finding" if len(report.findings) == 1 else "findings"]
    waived = sum(not one.counts for one in report.findings)
    told = f"{len(report.findings)} {noun}" if report.findings else words["no findings"]
    return told + (f" ({words['counted'].format(count=waived)})" if waived else "")


def waiver(finding: ReportedFinding, language: str) -> str:
    """What its waiver says, empty where it has none."""
    one = finding.waiver
    template = WORDS[language]["waiver ended" if one and one.ended else "waived"]
    return template.format(until=one.until, reason=one.reason) if one else ""


def follows(finding: ReportedFinding, report: Report) -> str:
    """Which finding it is a consequence of, empty where of none."""
    causes = [
        one.rank
        for one in report.findings[: finding.rank - 1]
        if finding.id in one.related and len({one.scope, finding.scope} - {""}) < 2
    ]
    return WORDS[report.language]["follows"].format(rank=causes[0]) if causes else ""


def versions(report: Report) -> list[MatrixVerdict]:
    """The verdicts on versions that are shown: none where a command is about something else."""
    return report.versions if report.command not in ("comm", "device") else []


def remarks(verdict: MatrixVerdict) -> tuple[str, ...]:
    """What limits a verdict, and why nothing decides where no way out is known."""
    return (*verdict.notes, *(() if verdict.suggestions else verdict.undecided))


def judged(report: Report) -> str:
    """How many checks came to which end, in the report's language."""
    return WORDS[report.language]["judged"].format(
        passed=report.count("pass"),
        failed=report.count("fail"),
        skipped=report.count("skip"),
        elsewhere=report.count("not-applicable"),
        crashed=report.count("crash"),
    )
