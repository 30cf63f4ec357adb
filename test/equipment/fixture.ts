import { setTimeout as sleep } from 'node:timers/promises'
import { type FullResponse, type Body, type CallOptions, call, type LiveResponse, open } from './client.ts'
import type { Configuration } from './configuration.ts'
import { type GatewayOptions, type RunningGateway, startGateway } from './gateway.ts'
import { type ScriptedUpstream, startUpstream } from './scripted-upstream.ts'

/** A scripted upstream and a gateway in front of it. */
export interface Fixture {
  readonly upstream: ScriptedUpstream
  readonly gateway: RunningGateway
  /** Makes a chat completion and reads the whole response. */
  chat(key: string, body: Body, options?: CallOptions): Promise<FullResponse>
  /** Makes a chat completion and returns its response while it arrives. */
  live(key: string, body: Body, options?: CallOptions): Promise<LiveResponse>
  close(): Promise<void>
}

/** Starts both; the configuration may refer to the upstream's lanes. */
export async function startFixture(
  configure: (upstream: ScriptedUpstream) => Configuration,
  options: Omit<GatewayOptions, 'config'> = {},
): Promise<Fixture> {
  const upstream = await startUpstream()
  const gateway = await startGateway({ ...options, config: configure(upstream) }).catch(
    async (error: unknown) => {
      await upstream.stop()
      throw error
    },
  )
  return {
    upstream,
    gateway,
    chat: (key, body, more) => call(gateway.url, body, { key, ...more }),
    live: (key, body, more) => open(gateway.url, body, { key, ...more }),
    async close() {
      await gateway.discard()
      await upstream.stop()
    },
  }
}

/** The body of a minimal chat request. */
export function ask(model: string, fields: Record<string, unknown> = {}): Record<string, unknown> {
  return { model, messages: [{ role: 'user', content: 'hi' }], ...fields }
}

/** The body of a minimal chat request for a stream. */
export function askStream(model: string, fields: Record<string, unknown> = {}): Record<string, unknown> {
  return ask(model, { stream: true, ...fields })
}

const MAX_ATTEMPTS = 50

/** Repeats a call while the gateway reports overload, as it may on a busy machine. */
export async function retryWhileOverloaded<Given extends FullResponse>(
  ask: () => Promise<Given>,
): Promise<Given> {
  for (let attempt = 1; ; attempt++) {
    const answer = await ask()
    const isBusy = answer.status === 503 && answer.text.includes('"code":"overloaded"')
    if (!isBusy || attempt === MAX_ATTEMPTS) return answer
    await sleep(100)
  }
}
