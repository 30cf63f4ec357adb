import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { freePort } from '../../test/fixtures/port.ts'
import type { Call, Candidate, Running } from './candidate.ts'
import { bodyOf } from '../load/requests.ts'
import { startMeasured } from '../measuring/started.ts'
import { PATHS, type Wire } from '../load/wire.ts'

const FOLDER = fileURLToPath(new URL('../peer', import.meta.url))
const PROGRAM = join(FOLDER, 'node_modules/@portkey-ai/gateway/build/start-server.js')
/** Portkey's names of the providers whose answers are in each dialect. */
export const PORTKEY_PROVIDERS: Readonly<Record<Wire, string>> = {
  chat: 'openai',
  messages: 'anthropic',
  responses: 'openai',
  gemini: 'google',
}
let upstreamOrigin = ''

/** Portkey's gateway, with the versions of its server library with which it works (`bench/peer`). */
export const portkey: Candidate = {
  async start(upstreamPort, folder) {
    upstreamOrigin = `http://127.0.0.1:${upstreamPort}/v1`
    return startPortkey(folder)
  },
  // Portkey converts only for clients of the chat dialect.
  request(call: Call) {
    if (call.method === 'GET' || call.client === 'messages') return undefined
    const headers = {
      authorization: 'Bearer upstream-key',
      'x-portkey-provider': PORTKEY_PROVIDERS[call.upstream],
      'x-portkey-custom-host': upstreamOrigin,
    }
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
    return { path: PATHS[call.client], headers: lines.join(''), body: bodyOf(call, call.client) }
  },
}

/** Starts Portkey on a free port. Resolves to the reason if it cannot be started here. */
export async function startPortkey(folder: string): Promise<Running | string> {
  if (!install()) return 'the peer could not be installed from the npm registry'
  const port = await freePort()
  const started = await startMeasured({
    command: [process.execPath, PROGRAM, `--port=${port}`, '--headless'],
    port,
    folder,
    env: { NODE_ENV: 'production' },
  })
  return { ...started, port }
}

function install(): boolean {
  if (existsSync(PROGRAM)) return true
  console.error('installing the peer into bench/peer/node_modules (npm ci)')
  const { status } = spawnSync('npm', ['ci', '--omit=dev'], {
    cwd: FOLDER,
    stdio: 'ignore',
    timeout: 120_000,
  })
  return status === 0 && existsSync(PROGRAM)
}
