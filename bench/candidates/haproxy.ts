import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { freePort } from '../../test/fixtures/port.ts'
import type { Candidate } from './candidate.ts'
import { installed } from '../measuring/installed.ts'
import { copiedRequest } from '../load/requests.ts'
import { startMeasured } from '../measuring/started.ts'

/** HAProxy as a plain proxy: one thread, keep-alive on both sides, no log. */
export const haproxy: Candidate = {
  async start(upstreamPort, folder) {
    const program = installed('haproxy')
    if (!program) return 'HAProxy is not installed (Debian: apt-get install haproxy)'
    const port = await freePort()
    const file = join(folder, 'haproxy.cfg')
    writeFileSync(file, configuration(port, upstreamPort))
    const started = await startMeasured({ command: [program, '-db', '-f', file], port, folder })
    return { ...started, port }
  },
  request: copiedRequest,
}

function configuration(port: number, upstreamPort: number): string {
  return `global
  maxconn 8192
  nbthread 1
defaults
  mode http
  no log
  option http-no-delay
  http-reuse always
  timeout connect 5s
  timeout client 300s
  timeout server 300s
frontend clients
  bind 127.0.0.1:${port}
  default_backend model
backend model
  server one 127.0.0.1:${upstreamPort}
`
}
