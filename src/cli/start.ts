import process from 'node:process'
import type { Config } from '../config/config.ts'
import { startGateway } from '../main.ts'
import { loadConfig } from './load-config.ts'
import { welcome } from './welcome.ts'

/** `sluice start`: runs until a signal. The exit code is 0 after a clean stop, 1 where it could not start. */
export async function start(options: { readonly config?: string }): Promise<number> {
  const config = loadConfig(options)
  return config ? run(config) : 1
}

/** Runs a gateway with a configuration that was read already. */
export async function run(config: Config): Promise<number> {
  let gateway: Awaited<ReturnType<typeof startGateway>>
  try {
    gateway = await startGateway(config)
  } catch (error) {
    process.stderr.write(`sluice cannot start: ${error instanceof Error ? error.message : String(error)}\n`)
    // Threads that were started on the way must not keep it alive.
    process.exit(1)
  }
  process.stdout.write(welcome(gateway, config))
  const signal = await untilSignal()
  process.stdout.write(`${signal}: no new calls are taken; running ones may end\n`)
  process.once(signal, () => process.exit(1))
  await gateway.close()
  return 0
}

function untilSignal(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => resolve(signal))
  })
}
