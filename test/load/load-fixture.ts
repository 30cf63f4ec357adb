import { execFileSync } from 'node:child_process'
import process from 'node:process'
import { channel, plainConfiguration } from '../fixtures/configuration.ts'
import { databaseOf } from '../fixtures/database.ts'
import { type RunningGateway, startGateway } from '../fixtures/gateway.ts'
import type { ArrivalsOrder, ArrivalsResult } from './arrivals.ts'
import { nextMessage, start } from './child.ts'
import type { Readiness } from './ready-upstream.ts'

/** The load's target and its placement. */
export interface LoadPlan {
  readonly upstream: Readiness
  /** Milliseconds before the upstream answers. */
  readonly afterMs?: number
  /** Options of gateway.yaml. */
  readonly options?: Readonly<Record<string, unknown>>
  /** Flags of Node for the gateway. */
  readonly flags?: string
  /** Whether the gateway has its own core, separate from that of upstream and generator (if `taskset` exists). */
  readonly apart?: boolean
}

/** A gateway with all features enabled, an upstream, and a load generator, each in a separate process. */
export interface LoadFixture {
  readonly gateway: RunningGateway
  /** Makes calls to the gateway, or directly to its upstream. */
  arrive(
    pace: ArrivalsOrder['pace'],
    seconds: number,
    more?: { readonly whom?: 'gateway' | 'upstream'; readonly settlingSeconds?: number },
  ): Promise<ArrivalsResult>
  /** The number of usage rows of fully charged calls. */
  charged(): number
  close(): Promise<void>
}

/** Starts everything. Calls have 4 KB, and request the upstream's prepared response. */
export async function startLoadFixture(plan: LoadPlan): Promise<LoadFixture> {
  const upstream = start(
    new URL('./ready-upstream.ts', import.meta.url),
    plan.upstream,
    String(plan.afterMs ?? 0),
  )
  const generator = start(new URL('./arrivals.ts', import.meta.url))
  const port = await nextMessage<number>(upstream)
  const base = `http://127.0.0.1:${port}/v1`
  const protocol = plan.upstream === 'completion' ? 'chat' : 'messages'
  const gateway = await startGateway({
    config: {
      ...plainConfiguration(base),
      channels: [channel('m', base, { protocol })],
      options: plan.options ?? {},
    },
    env: { LOG_LEVEL: 'warn', ...(plan.flags === undefined ? {} : { NODE_OPTIONS: plan.flags }) },
  })
  if (plan.apart) {
    pin(gateway.pid, 0)
    for (const { pid = 0 } of [upstream, generator]) pin(pid, 1)
  }
  const body = JSON.stringify({
    model: 'm',
    stream: plan.upstream !== 'completion',
    messages: [{ role: 'user', content: 'word '.repeat(800) }],
    max_tokens: 1000,
  })
  return {
    gateway,
    arrive(pace, seconds, { whom = 'gateway', settlingSeconds = 0 } = {}) {
      const order: ArrivalsOrder = {
        port: whom === 'gateway' ? gateway.port : port,
        key: 'ann',
        body,
        seconds,
        settlingSeconds,
        pace,
      }
      const result = nextMessage<ArrivalsResult>(generator)
      generator.send(order)
      return result
    },
    charged: () =>
      databaseOf(gateway.dataDir)
        .usage()
        .filter(({ reason }) => reason === 'complete').length,
    async close() {
      upstream.kill()
      generator.kill()
      await gateway.discard()
    },
  }
}

function pin(pid: number, core: number): void {
  try {
    execFileSync('taskset', ['-acp', String(core), String(pid)], { stdio: 'ignore' })
  } catch {
    console.log(`process ${pid} of ${process.pid} runs where it likes: taskset cannot tell it where`)
  }
}
