import { randomUUID } from 'node:crypto'
import type { Agent } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Behaviour } from './behaviour.ts'
import { type Body, type CallOptions, type LiveResponse, open } from './client.ts'
import { formBytes, formCall, recordingParts, waveFile } from './form.ts'
import { answered, events, json } from './media-fixture.ts'
import type { Received } from './scripted-upstream.ts'
import type { ObservedCall, TrafficPlan } from './traffic.ts'

/** The models of the traffic and their prices: 100 units an image, 10 a character, 50 a second. */
export const MEDIA_MODELS: Readonly<Record<string, object>> = {
  pictures: { price: { image: 0.0002 } },
  voice: { price: { characters: 20 } },
  scribe: { price: { second: 0.0001 } },
}

const UNITS_PER_IMAGE = 100
const UNITS_PER_CHARACTER = 10
const UNITS_PER_SECOND = 50
/** Large enough that some kills happen in the middle of it. */
const IMAGE = 'QUJD'.repeat(20_000)
/** Milliseconds that an image takes, which is enough for its hold to become durable. */
const IMAGE_MS = 20
const SOUND = Buffer.alloc(200_000, 1)
/** Seconds of a recording that is in memory, and of one that is on disk. */
const SHORT_RECORDING = 2
const LONG_RECORDING = 40

/** One call, and its cost where the client sees it complete. */
interface MediaOrder {
  readonly body: Body
  readonly options: CallOptions
  readonly cost: number
  /** Whether a response is complete. */
  readonly isWhole: (text: string) => boolean
}

/** Whether a call is for images or audio. */
export function isMediaPath(path: string): boolean {
  return /^\/v1\/(?:images|audio)\//.test(path)
}

/** The upstream's response to a call. */
export function mediaBehaviour({ path, text }: Pick<Received, 'path' | 'text'>): Behaviour {
  switch (path) {
    case '/v1/images/generations': {
      const { n, stream } = JSON.parse(text) as { n: number; stream: boolean }
      if (stream) return events({ type: 'image_generation.completed', b64_json: IMAGE })
      const images = json({ data: Array.from({ length: n }, () => ({ b64_json: IMAGE })) })
      return { ...images, after: sleep(IMAGE_MS) }
    }
    case '/v1/images/edits':
      return { ...json({ data: [{ b64_json: IMAGE }] }), after: sleep(IMAGE_MS) }
    case '/v1/audio/speech':
      return answered('audio/mpeg', SOUND)
    default:
      return answered('text/plain', 'hello\n')
  }
}

/** Makes a call for images or audio. */
export async function oneMediaCall(
  url: string,
  { keys, random }: Pick<TrafficPlan, 'keys' | 'random'>,
  agent: Agent,
): Promise<ObservedCall> {
  const key = keys[Math.floor(random() * keys.length)] ?? ''
  const { body, options, cost, isWhole } = orderFor(random, key)
  const sent = { call: randomUUID(), url, key, sentMs: performance.now(), words: 0, seenCost: 0 }
  let live: LiveResponse
  try {
    live = await open(url, body, { ...options, agent })
  } catch {
    const nothing = { id: undefined, status: 0, sawContent: false, complete: false, quota: 0 }
    return { ...sent, ...nothing, endedMs: performance.now(), code: undefined, retryAfter: undefined }
  }
  const answer = await live.end()
  const id = answer.headers['x-request-id']
  return {
    ...sent,
    id: typeof id === 'string' ? id : undefined,
    status: answer.status,
    sawContent: answer.status === 200 && answer.bytes.length > 0,
    complete: !answer.broken && (answer.status !== 200 || isWhole(answer.text)),
    quota: cost,
    endedMs: performance.now(),
    code: answer.status >= 400 && !answer.broken ? answer.json().error.code : undefined,
    retryAfter: answer.headers['retry-after'],
  }
}

function orderFor(random: () => number, key: string): MediaOrder {
  const kind = random()
  if (kind < 0.4) return imageOrder(random, key)
  if (kind < 0.5) {
    const body = formBytes([
      { name: 'image', content: Buffer.alloc(1000, 1), filename: 'a.png', type: 'image/png' },
      { name: 'prompt', content: 'x' },
      { name: 'model', content: 'pictures' },
    ])
    return {
      body,
      options: formCall('/v1/images/edits', key, body),
      cost: UNITS_PER_IMAGE,
      isWhole: () => true,
    }
  }
  if (kind < 0.75) {
    const input = 'x'.repeat(1 + Math.floor(random() * 20))
    return {
      body: { model: 'voice', input, voice: 'v' },
      options: { path: '/v1/audio/speech', key },
      cost: input.length * UNITS_PER_CHARACTER,
      isWhole: () => true,
    }
  }
  const seconds = random() < 0.1 ? LONG_RECORDING : SHORT_RECORDING
  const body = formBytes(recordingParts('scribe', waveFile(seconds)))
  const path = random() < 0.5 ? '/v1/audio/transcriptions' : '/v1/audio/translations'
  return {
    body,
    options: formCall(path, key, body),
    cost: seconds * UNITS_PER_SECOND,
    isWhole: () => true,
  }
}

function imageOrder(random: () => number, key: string): MediaOrder {
  const stream = random() < 0.5
  const n = stream ? 1 : 1 + Math.floor(random() * 3)
  return {
    body: { model: 'pictures', prompt: 'x', n, stream },
    options: { path: '/v1/images/generations', key },
    cost: n * UNITS_PER_IMAGE,
    isWhole: (text) => !stream || !text.includes('event: error'),
  }
}
