# Three steps that do nothing, on DBOS, called by threads of this process. Arguments: the database's URL, how many callers,
# seconds to warm up, seconds to measure. Prints requests a second, and p50 and p99 in ms.
import sys
import threading
import time
import uuid

from dbos import DBOS, SetWorkflowID

url, callers, warm_up, measure = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), float(sys.argv[4])
DBOS(config={"name": "bench", "system_database_url": url, "log_level": "ERROR", "run_admin_server": False})


@DBOS.step()
def step(name: str, reference: str) -> str:
    return f"{name}-{reference}"


@DBOS.workflow()
def workflow(reference: str) -> dict:
    for name in ("reserve", "charge", "notify"):
        step(name, reference)
    return {"object": "charge", "reference": reference, "status": "succeeded"}


DBOS.launch()
start = time.monotonic() + warm_up
end = start + measure
latencies: list[float] = []


def caller() -> None:
    while (sent := time.monotonic()) < end:
        key = str(uuid.uuid4())
        with SetWorkflowID(key):
            workflow(key)
        done = time.monotonic()
        if start <= done < end:
            latencies.append((done - sent) * 1000)


threads = [threading.Thread(target=caller) for _ in range(callers)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
DBOS.destroy()
latencies.sort()
at = lambda share: latencies[min(int(len(latencies) * share), len(latencies) - 1)] if latencies else float("nan")
print(len(latencies) / measure, at(0.5), at(0.99))
