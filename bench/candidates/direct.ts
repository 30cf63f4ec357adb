import type { Candidate } from './candidate.ts'
import { copiedRequest } from '../load/requests.ts'

/** No program in between: the client calls the upstream. */
export const direct: Candidate = {
  start: (upstreamPort) =>
    Promise.resolve({ port: upstreamPort, pid: 0, [Symbol.asyncDispose]: () => Promise.resolve() }),
  request: copiedRequest,
}
