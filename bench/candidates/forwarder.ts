import { join } from 'node:path'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { freePort } from '../../test/fixtures/port.ts'
import type { Candidate, Running } from './candidate.ts'
import { gatewayRequest } from '../load/requests.ts'
import { startMeasured } from '../measuring/started.ts'

const PROGRAM = fileURLToPath(new URL('../forwarder/program.ts', import.meta.url))

/** A bare forwarder on `node:http` and `undici`, on a plain Node. */
export const forwarder: Candidate = {
  start: (upstreamPort, folder) => startForwarder(upstreamPort, folder),
  request: gatewayRequest,
}

/** The same, but each response waits until a row about it is on the disk. */
export const committing: Candidate = {
  start: (upstreamPort, folder) => startForwarder(upstreamPort, folder, join(folder, 'calls.db')),
  request: gatewayRequest,
}

async function startForwarder(upstreamPort: number, folder: string, ...database: string[]): Promise<Running> {
  const port = await freePort()
  const started = await startMeasured({
    command: [process.execPath, PROGRAM, `http://127.0.0.1:${upstreamPort}`, ...database],
    port,
    folder,
    env: { PORT: String(port) },
  })
  return { ...started, port }
}
