import { spawn } from 'node:child_process'
import { join } from 'node:path'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import type { RunningGateway } from './gateway.ts'

/** What a command came to. */
export interface Outcome {
  readonly code: number | null
  readonly out: string
  readonly err: string
  /** Standard output as JSON. */
  json(): unknown
}

const REPOSITORY = fileURLToPath(new URL('../..', import.meta.url))

/** The secret of gateways that commands are run beside. */
export const SECRET = 'the-secret-of-the-tests-of-commands'

/** Runs `sluice` to its end, in an environment of its own; `input` is what stands on its standard input. */
export function sluice(
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  input?: string,
): Promise<Outcome> {
  const child = spawn(process.execPath, ['bin/sluice.mjs', ...args], {
    cwd: REPOSITORY,
    stdio: ['pipe', 'pipe', 'pipe'],
    env: { PATH: process.env['PATH'], HOME: process.env['HOME'], ...env },
  })
  // A command that does not read it may be gone before.
  child.stdin.on('error', () => {})
  child.stdin.end(input)
  let [out, err] = ['', '']
  child.stdout.on('data', (chunk: Buffer) => {
    out += chunk.toString()
  })
  child.stderr.on('data', (chunk: Buffer) => {
    err += chunk.toString()
  })
  return new Promise((resolve) => {
    child.on('close', (code) => resolve({ code, out, err, json: () => JSON.parse(out) }))
  })
}

/** A command on a gateway's data folder, with all that the gateway itself was started with. */
export function commandOn(gateway: RunningGateway, ...args: string[]): Promise<Outcome> {
  return commandReading(undefined, gateway, ...args)
}

/** The same with something on its standard input. */
export function commandReading(
  input: string | undefined,
  { dataDir }: RunningGateway,
  ...args: string[]
): Promise<Outcome> {
  const env = {
    DATA_DIR: dataDir,
    GATEWAY_SECRET: SECRET,
    GATEWAY_CONFIG: join(dataDir, 'gateway.yaml'),
  }
  return sluice(args, env, input)
}

/** Whether a gateway runs on the data folder while commands do. */
export const MANNERS = ['while the gateway runs', 'while it does not'] as const

/** Does the work with the gateway running, or stopped; it runs again afterwards. */
export async function inManner<Result>(
  manner: (typeof MANNERS)[number],
  gateway: RunningGateway,
  work: () => Promise<Result>,
): Promise<Result> {
  if (manner === 'while the gateway runs') return work()
  await gateway.stop()
  try {
    return await work()
  } finally {
    await gateway.restart()
  }
}
