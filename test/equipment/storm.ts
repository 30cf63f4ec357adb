import { Agent } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { audit, type Granted, type Sighting } from './auditor.ts'
import { type Behaviour, usageText } from './behaviour.ts'
import { type LiveAnswer, open } from './client.ts'
import { channel, type Configuration, priced, ROOT, token, user } from './configuration.ts'
import { type RunningGateway, startGateway } from './gateway.ts'
import { randomFrom } from './random.ts'
import { startUpstream } from './scripted-upstream.ts'

/** How a storm goes. */
export interface StormPlan {
  readonly seed: number
  readonly rounds: number
  readonly clients: number
  /** Where the program lies, if it is not the repository's. */
  readonly root?: string
}

/** What a storm came to. */
export interface StormReport {
  /** Empty if every promise held. */
  readonly broken: readonly string[]
  readonly requests: number
  readonly complete: number
  readonly partial: number
  readonly refused: number
}

/** Output tokens that a request may have; the upstream keeps to it, so that no answer costs more than its hold. */
const MAXIMUM = 60
const QUOTA = 1_000_000_000
/** Runs out on the way. */
const SCARCE = 20_000
const KEYS = ['calm', 'windy', 'scarce']

/**
 * Round by round: clients call in every manner, the gateway is killed in the middle with SIGKILL, started again on the
 * same data directory, and its books are compared with what the clients saw. Stops at the first round that breaks a promise.
 */
export async function storm(plan: StormPlan): Promise<StormReport> {
  const random = randomFrom(plan.seed)
  const upstream = await startUpstream()
  upstream.decide('m', ({ text }) => behaviourOf(JSON.parse(text).user as string))
  const gateway = await startGateway({
    config: configuration(upstream.baseUrl('m')),
    env: { LOG_LEVEL: 'warn' },
    ...(plan.root === undefined ? {} : { root: plan.root }),
  })
  const sightings: Sighting[] = []
  let broken: string[] = []
  try {
    for (let round = 0; round < plan.rounds && broken.length === 0; round++) {
      const stop = { now: false }
      const clients = Array.from({ length: plan.clients }, () => client(gateway, random, sightings, stop))
      await sleep(120 + random() * 350)
      await gateway.kill()
      stop.now = true
      await Promise.all(clients)
      await gateway.restart()
      broken = audit(gateway.dataDir, sightings, GRANTED)
      upstream.forget('m')
    }
  } finally {
    await gateway.discard()
    await upstream.stop()
  }
  return {
    broken,
    requests: sightings.length,
    complete: sightings.filter(({ status, complete }) => status === 200 && complete).length,
    partial: sightings.filter(({ sawContent, complete }) => sawContent && !complete).length,
    refused: sightings.filter(({ status }) => status >= 400).length,
  }
}

const GRANTED: Granted = {
  tokens: new Map([
    ['token-calm', QUOTA],
    ['token-windy', QUOTA],
    ['token-scarce', SCARCE],
  ]),
  users: new Map([
    ['ann', QUOTA],
    ['bob', QUOTA],
  ]),
}

function configuration(baseUrl: string): Configuration {
  return {
    models: priced(['m']),
    channels: [channel('m', baseUrl)],
    users: [
      ROOT,
      user(2, 'ann', [token('calm', { remain_quota: QUOTA }), token('scarce', { remain_quota: SCARCE })], {
        quota: QUOTA,
      }),
      user(3, 'bob', [token('windy', { remain_quota: QUOTA })], { quota: QUOTA }),
    ],
  }
}

async function client(
  gateway: RunningGateway,
  random: () => number,
  sightings: Sighting[],
  stop: { readonly now: boolean },
): Promise<void> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  while (!stop.now) sightings.push(await oneCall(gateway, random, agent))
  agent.destroy()
}

async function oneCall(gateway: RunningGateway, random: () => number, agent: Agent): Promise<Sighting> {
  const stream = random() < 0.5
  const abort = random() < 0.1
  const prompt = 1 + Math.floor(random() * 5)
  const completion = 1 + Math.floor(random() * MAXIMUM)
  const key = KEYS[Math.floor(random() * KEYS.length)] ?? 'calm'
  const request = {
    model: 'm',
    messages: [{ role: 'user', content: 'hi' }],
    max_tokens: MAXIMUM,
    // What the upstream is to do; it reads it from here.
    user: `${stream ? 'stream' : 'whole'} ${prompt} ${completion} ${random() < 0.3 ? 2 : 0}`,
    stream,
  }
  const quota = prompt + 4 * completion
  let live: LiveAnswer
  try {
    live = await open(gateway.url, request, { key, agent })
  } catch {
    await sleep(5)
    return { id: undefined, status: 0, sawContent: false, complete: false, quota }
  }
  if (abort && stream && live.status === 200) {
    await live.until('"content":" w').catch(() => {})
    live.abort()
  }
  const answer = await live.end()
  const id = answer.headers['x-request-id']
  const complete = stream && answer.status === 200 ? answer.text.includes('data: [DONE]') : !answer.broken
  return {
    id: typeof id === 'string' ? id : undefined,
    status: answer.status,
    sawContent: answer.status === 200 && /"content":"[^"]/.test(answer.text),
    complete,
    // Seen in part, a call may cost what the counts of the gateway make of it, but never more than its hold.
    quota: complete ? quota : 4 * MAXIMUM + 1000,
  }
}

function behaviourOf(order: string): Behaviour {
  const [kind, prompt, completion, paceMs] = order.split(' ')
  const usage = usageText(Number(prompt), Number(completion))
  if (kind === 'whole')
    return { kind: 'whole', usage, after: new Promise((resolve) => setTimeout(resolve, Number(paceMs) * 5)) }
  return { kind: 'stream', events: Number(completion), paceMs: Number(paceMs), usage, word: ' w' }
}
