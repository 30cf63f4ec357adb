import process from 'node:process'
import { setTimeout as sleep } from 'node:timers/promises'
import { type RunningGateway, startGateway } from '../fixtures/gateway.ts'
import { longestWaitDuring } from '../fixtures/latency-probe.ts'
import { mainThreadCpuMs, processCpuMs } from '../fixtures/process-cpu.ts'
import { metricsOf } from '../operations/metrics-text.ts'

/** The cost of rereading the configuration in a running gateway. */
export interface ReloadCost {
  /** Milliseconds until the configuration was applied. */
  readonly tookMs: number
  /** CPU time of the whole process, and of the thread that serves calls. */
  readonly cpuMs: number
  readonly mainThreadCpuMs: number
  /** The longest delay of the event loop that the gateway reports. */
  readonly longestTurnMs: number
  /**
   * The duration of a reload beside a client that sends one probe after another, and that client's longest
   * latency.
   */
  readonly probedMs: number
  readonly longestWaitMs: number
}

/** The key of the user of this index, without `sk-`. */
export function keyOf(index: number): string {
  return `Key${String(index).padStart(8, '0')}abcdefghijklmnop`
}

/** A configuration whose users have a key each, with quota, group, budget and rate limit. */
export function configurationOfUsers(count: number, baseUrl: string): string {
  const users = Array.from(
    { length: count },
    (_, index) => `  - username: user${index}
    group: default
    quota: 500000000
    budget: 1000000
    budget_period: month
    tokens:
      - name: main
        key: ${keyOf(index)}
        remain_quota: 100000000
        rate_limit: { requests: 600, parallel: 20 }
`,
  )
  return `models: { m: { vendor: acme, price: { input: 2, output: 8 } } }
channels: [{ name: m, protocol: chat, base_url: "${baseUrl}", keys: [upstream-key], models: [m] }]
users:
${users.join('')}`
}

/** A gateway, and the CPU milliseconds until it was ready. */
export async function measuredStart(
  options: Parameters<typeof startGateway>[0],
): Promise<{ readonly gateway: RunningGateway; readonly cpuMs: number; readonly tookMs: number }> {
  const began = performance.now()
  const gateway = await startGateway(options)
  return { gateway, cpuMs: processCpuMs(gateway.pid), tookMs: performance.now() - began }
}

/** Starts a gateway again, and measures it as `measuredStart` does. */
export async function measuredRestart(
  gateway: RunningGateway,
): Promise<{ readonly cpuMs: number; readonly tookMs: number }> {
  await gateway.stop()
  const began = performance.now()
  await gateway.restart()
  return { cpuMs: processCpuMs(gateway.pid), tookMs: performance.now() - began }
}

/** Measures reloads of the same file after a signal: one for the CPU time, and one beside another client. */
export async function measuredReloads(gateway: RunningGateway): Promise<ReloadCost> {
  const { pid } = gateway
  const applied = (): string[] =>
    gateway
      .logs()
      .split('\n')
      .filter((line) => line.includes('"msg":"configuration applied"'))
  // By the time in the log, whose lines are written four times a second.
  const reload = async (): Promise<number> => {
    const before = applied().length
    const began = Date.now()
    process.kill(pid, 'SIGHUP')
    while (applied().length === before) await sleep(5)
    const { time } = JSON.parse(applied().at(-1) ?? '') as { readonly time: number }
    return time - began
  }
  // Requesting the metrics begins the next interval, with its next sample.
  await metricsOf(gateway.url)
  await sleep(300)
  const [cpu, main] = [processCpuMs(pid), mainThreadCpuMs(pid)]
  const tookMs = await reload()
  const cost = { cpuMs: processCpuMs(pid) - cpu, mainThreadCpuMs: mainThreadCpuMs(pid) - main }
  const turnSeconds = (await metricsOf(gateway.url)).sum('sluice_event_loop_delay_max_seconds')
  const longestTurnMs = Math.round(turnSeconds * 1000)
  let probedMs = 0
  const longestWaitMs = await longestWaitDuring(gateway.url, async () => {
    probedMs = await reload()
  })
  return { tookMs, ...cost, longestTurnMs, probedMs, longestWaitMs }
}
