import type { OutgoingBody } from '@sluice/http1'
import { batchApiOf } from '../../../domain/protocols.ts'
import type { Channel } from '../../../domain/records/channel.ts'
import { batchUseOf } from '../../../domain/records/channel.ts'
import type { Settings } from '../../../domain/settings.ts'
import type { LinePath } from '../batch.ts'
import type { BatchConnection } from './connection.ts'

/** A batch as it is to be made at a provider. */
export interface BatchToMake {
  /** Our name of the batch, by which it is found again. */
  readonly name: string
  /** Path of the requests, as the provider's API has it. */
  readonly path: string
  readonly upstreamModel: string
  /** Number of lines. */
  readonly lines: number
  /** When it was decided to make the batch, in Unix milliseconds. */
  readonly intentMs: number
  /** The bytes that `written` has made, without what comes before, between and after them. */
  readonly content: OutgoingBody
  /** Whether this id of the provider is that of another batch. */
  readonly isOfOther: (id: string) => Promise<boolean>
  /** Whether `written` has made a line of this batch with this id. */
  readonly isOwnLine: (id: string) => boolean
  /** Called with the id of a file that was uploaded, which the batch alone needs. */
  readonly onUploaded: (file: string) => Promise<void>
  /** Called before the request that makes the batch. Rejects if another node works on it. */
  readonly confirm: () => Promise<void>
}

/** What a provider says about a batch. `id` is the provider's. */
export interface BatchLook {
  readonly id: string
  /** How it has ended; undefined while it runs. */
  readonly ended: 'completed' | 'expired' | 'cancelled' | 'failed' | undefined
  /** Where its results are, as `results` reads them. */
  readonly results: readonly string[]
  /** Why the provider has refused all of it. */
  readonly words?: string | undefined
}

/** The result of a line: an answer, or how it has ended without one. */
export interface ProviderResult {
  /** The id that `written` gave the line. */
  readonly id: string
  readonly answer: { readonly status: number; readonly body: Buffer } | 'expired' | 'cancelled'
}

/** The batch API of a provider. All functions reject with `ProviderRefused` or `TransportError`. */
export interface BatchApiOfProvider {
  readonly maxLines: number
  readonly maxBytes: number
  /** The bytes of one line. */
  written(channel: Channel, id: string, path: string, body: Buffer): Buffer
  /** Resolves to the provider's id. */
  make(at: BatchConnection, batch: BatchToMake): Promise<string>
  /** Asks whether the provider has the batch. Rejects with `TransportError` while that cannot be known. */
  find(at: BatchConnection, batch: BatchToMake): Promise<string | undefined>
  look(at: BatchConnection, id: string): Promise<BatchLook>
  /** Reads results; a line that cannot be read is undefined. */
  results(at: BatchConnection, where: string): AsyncGenerator<ProviderResult | undefined, void, undefined>
  cancel(at: BatchConnection, id: string): Promise<void>
  /** Deletes an uploaded file; absent if none is uploaded. */
  removeFile?(at: BatchConnection, file: string): Promise<void>
}

/** Line ends in a request; a JSON text has them only between its tokens. */
export function onOneLine(body: Buffer): string {
  const text = body.toString()
  return /[\r\n]/.test(text) ? text.replaceAll(/[\r\n]+/g, ' ') : text
}

/** A content with something before and after it. */
export function enclosed(before: Buffer, content: OutgoingBody, after: Buffer): OutgoingBody {
  const end = before.length + content.length
  return {
    length: end + after.length,
    read(position) {
      if (position < before.length) return Promise.resolve(before.subarray(position))
      if (position < end) return content.read(position - before.length)
      return Promise.resolve(after.subarray(position - end))
    },
  }
}

/** Paths whose requests are not converted between protocols. */
const UNCONVERTED: ReadonlySet<LinePath> = new Set(['/v1/embeddings', '/v1/moderations'])

function canBatch(channel: Channel, path: LinePath): boolean {
  if (batchUseOf(channel) === false) return false
  const { provider, protocol } = channel
  if (provider !== 'generic') return protocol.some((one) => batchApiOf(provider, one))
  if (protocol.includes('rerank')) return false
  return !UNCONVERTED.has(path) || protocol.includes('chat')
}

const known = new WeakMap<Settings, Map<LinePath, Settings>>()

/** The settings with the channels alone that can batch requests of this path. */
export function settingsForBatches(settings: Settings, path: LinePath): Settings {
  let byPath = known.get(settings)
  if (!byPath) known.set(settings, (byPath = new Map()))
  let found = byPath.get(path)
  if (!found) {
    const channels = settings.channels.filter((channel) => canBatch(channel, path))
    // Routing leaves channels out that serve batches only.
    found = { ...settings, channels: channels.map((channel) => ({ ...channel, batches: true })) }
    byPath.set(path, found)
  }
  return found
}
