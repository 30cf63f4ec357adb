import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { freePort } from '../../test/equipment/port.ts'
import type { Candidate } from '../candidate.ts'
import { gatewayRequest } from '../requests.ts'
import { startMeasured } from '../started.ts'

const PROGRAM = fileURLToPath(new URL('../forwarder/program.ts', import.meta.url))

/** A bare forwarder on `node:http` and `undici`, on a plain Node. */
export const forwarder: Candidate = {
  async start(upstreamPort, folder) {
    const port = await freePort()
    const command = [process.execPath, PROGRAM, `http://127.0.0.1:${upstreamPort}`] as const
    const started = await startMeasured({ command: [...command], port, folder, env: { PORT: String(port) } })
    return { ...started, port }
  },
  request: gatewayRequest,
}
