import { answer } from "./answer.js";
import type { Job } from "./protocol.js";

addEventListener("message", (event: MessageEvent<Job>) => postMessage(answer(event.data)));
