import { parentPort } from "node:worker_threads";

import { answer } from "./answer.js";
import type { Job } from "./protocol.js";

parentPort!.on("message", (job: Job) => parentPort!.postMessage(answer(job)));
