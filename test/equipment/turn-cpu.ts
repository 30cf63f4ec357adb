import process from 'node:process'
import { setTimeout as sleep } from 'node:timers/promises'
import type { RunningGateway } from './gateway.ts'

/** Environment of a gateway whose turns are measured. */
export const MEASURED_TURNS: Readonly<Record<string, string>> = {
  NODE_OPTIONS: `--import=${new URL('turn-cpu-preload.ts', import.meta.url).href}`,
}

/**
 * The maximum CPU milliseconds of a turn of the gateway's event loop while the work was done. Other
 * processes, which delay a turn, do not affect it.
 */
export async function mostTurnCpuMs(gateway: RunningGateway, work: () => Promise<void>): Promise<number> {
  await report(gateway)
  await work()
  return report(gateway)
}

async function report(gateway: RunningGateway): Promise<number> {
  const before = gateway.logs().length
  process.kill(gateway.pid, 'SIGUSR2')
  for (;;) {
    const said = /CPU milliseconds of a turn: ([\d.e-]+)\n/.exec(gateway.logs().slice(before))
    if (said) return Number(said[1])
    await sleep(10)
  }
}
