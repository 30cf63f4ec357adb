import { sendResponsePieces } from '@sluice/http1'
import { scanObject } from '@sluice/wire/json/json-scan'
import { KnownMemberNames } from '@sluice/wire/json/known-names'
import { asRecord } from '@sluice/wire/json/record'
import type { Caller } from '../../accounts/authentication/caller.ts'
import { publicOrigin } from '../../accounts/authentication/trusted-peer.ts'
import type { BodyReader, FormBody } from '../../call/body-reader.ts'
import type { CallLimits } from '../../call/call-limits.ts'
import type { LifeCycle } from '../../call/life-cycle.ts'
import type { Relay } from '../../call/relay.ts'
import type { IncomingCall } from '../../call/incoming-call.ts'
import { waitLimitsOf } from '../../call/wait-limits.ts'
import { readStoredBytes } from '../../call/form-body.ts'
import type { Settings } from '../../domain/settings.ts'
import { fitsInCodePoints } from '../../domain/text-length.ts'
import { GatewayError } from '../../errors.ts'
import { answerHeaders } from '../../http/answer-headers.ts'
import type { StoreReads } from '../../limits/store-reads.ts'
import { type Batch, type BatchApi, LINE_ENDPOINTS, type LinePath, newBatchId } from './batch.ts'
import { batchObject, messageBatchObject } from './batch-objects.ts'
import type { BatchRuns } from './batch-runs.ts'
import type { BatchStore } from './batch-store.ts'
import { LineChecks, maxLineBytes, WrongLines } from './check-lines.ts'
import {
  answer,
  beginReading,
  expiryMs,
  invalid,
  limitIn,
  orderIn,
  PARTS_BYTES,
  readQuery,
} from './exchange.ts'
import type { FileStore } from './file-store.ts'
import { linesOf, type RawLine, requestsOf } from './piece-reader.ts'

/** Maximum size of the body of a message batch, in bytes. */
const MAX_BODY_BYTES = 268_435_456
const MAX_LISTED = { openai: 100, messages: 1_000 } as const
const USUALLY_LISTED = 20
/** Bounds of metadata. */
const MAX_ENTRIES = 16
const MAX_METADATA_NAME = 64
const MAX_METADATA_TEXT = 512
/** Headers of a submission that hold for each of its lines. */
const HEADERS_OF_LINES = ['anthropic-version', 'anthropic-beta'] as const

/** Names of metadata are the client's, and each is given once. */
const METADATA_NAMES = new KnownMemberNames([])
const EXPIRY_NAMES = new KnownMemberNames(['anchor', 'seconds'])
const NAMES = new KnownMemberNames(['input_file_id', 'endpoint', 'completion_window'], {
  metadata: () => METADATA_NAMES,
  output_expires_after: () => EXPIRY_NAMES,
})

/** Services that the endpoints for batches need. */
export interface BatchServices {
  readonly settings: () => Settings
  readonly files: FileStore
  readonly batches: BatchStore
  readonly runs: BatchRuns
  readonly relay: Pick<Relay, 'later' | 'refusal'>
  readonly bodies: BodyReader
  readonly limits: CallLimits
  readonly reads: StoreReads
  readonly lifeCycle: Pick<LifeCycle, 'read'>
}

/** What a submission states, apart from its lines. */
interface Submission extends Pick<Batch['facts'], 'path' | 'inputFile' | 'metadata' | 'keepMs'> {
  readonly api: BatchApi
  readonly mayBeLocal: boolean
  /** Reads the lines. */
  readonly lines: (maxBytes: number) => AsyncIterable<RawLine>
}

/** Batches of both APIs: `docs/batches.md: Batches`. */
export class Batches {
  readonly #services: BatchServices

  constructor(services: BatchServices) {
    this.#services = services
  }

  /** Makes a batch of the lines of a file. */
  async create(incoming: IncomingCall, caller: Caller): Promise<void> {
    const { bodies, files } = this.#services
    const settings = this.#services.settings()
    const owner = { client: caller.user.id, key: caller.token.id }
    const body = await bodies.readLarge(incoming, { owner, limit: settings.options.body_limit })
    await this.#once(incoming, caller, settings, body, async (call) => {
      const pieces: Buffer[] = []
      for await (const piece of bytesOf(body)) pieces.push(piece)
      const { inputFile, ...stated } = readSubmission(Buffer.concat(pieces), settings)
      const file = await files.find(caller.user.id, inputFile)
      if (file.purpose !== 'batch') throw invalid('input_file_id: expected a file of purpose "batch"')
      const lines = (maxBytes: number) => linesOf(files.content(file), maxBytes)
      const batch = await this.#submit(call, caller, settings, { api: 'openai', inputFile, ...stated, lines })
      answer(call, batchObject(batch))
    })
  }

  /** Makes a message batch of the requests in the body. */
  async createOfMessages(incoming: IncomingCall, caller: Caller): Promise<void> {
    const settings = this.#services.settings()
    const owner = { client: caller.user.id, key: caller.token.id }
    const body = await this.#services.bodies.readLarge(incoming, { owner, limit: MAX_BODY_BYTES })
    await this.#once(incoming, caller, settings, body, async (call) => {
      const batch = await this.#submit(call, caller, settings, {
        api: 'messages',
        path: '/v1/messages',
        inputFile: null,
        metadata: null,
        keepMs: settings.options.files.keep,
        mayBeLocal: settings.options.local_batches,
        lines: (maxBytes) => requestsOf(bytesOf(body), maxBytes),
      })
      answer(call, this.#messageObject(batch, call), 'messages')
    })
  }

  /** Runs a submission, or repeats the answer that its idempotency key has. */
  async #once(
    incoming: IncomingCall,
    caller: Caller,
    settings: Settings,
    body: FormBody,
    submit: (incoming: IncomingCall) => Promise<void>,
  ): Promise<void> {
    const { lifeCycle, limits, relay } = this.#services
    const run = async (call: IncomingCall): Promise<void> => {
      if (call.unlessKept) throw call.unlessKept
      await limits.enter(settings, caller, settings.models.get(''))
      await submit(call)
    }
    try {
      const read = lifeCycle.read(incoming, settings)
      await (read ? read({ body, incoming, caller, settings }, run) : run(incoming))
    } catch (error) {
      const line = error instanceof WrongLines ? { bytes: error.line } : undefined
      throw relay.refusal(error, {}, line, incoming, caller, settings)
    } finally {
      body.release()
    }
  }

  /** Checks all lines, reserves what they may cost, and makes a batch of them. */
  async #submit(
    incoming: IncomingCall,
    caller: Caller,
    settings: Settings,
    { api, path, inputFile, metadata, keepMs, mayBeLocal, lines }: Submission,
  ): Promise<Batch> {
    const { batches, runs, relay } = this.#services
    const { most } = settings.options.batches
    const userId = caller.user.id
    // Refused before anything is read; it is checked again when the batch is made, because others may be made before it.
    await batches.refuseFurther(userId, most)
    const { id, createdMs } = newBatchId(api)
    const headers = headersOfLines(incoming)
    const isLeft = (): boolean => incoming.response.isAborted
    const checks = new LineChecks(relay.later, { api, path, headers, caller, settings, mayBeLocal, isLeft })
    await batches.storeInput({ id, userId, createdMs }, keepMs, checks.check(lines(maxLineBytes(settings))))
    try {
      const [model = null, ...others] = checks.models
      const facts = {
        path,
        inputFile,
        metadata,
        headers,
        groups: [...checks.groups.keys()],
        keepMs,
        total: checks.count,
        held: checks.sum,
        counts: { completed: 0, failed: 0, cancelled: 0, expired: 0 },
        usage: { input: 0, cached: 0, output: 0, reasoning: 0 },
        model: others.length === 0 ? model : null,
        outputFile: null,
        errorFile: null,
      }
      const batch = { id, userId, tokenId: caller.token.id, createdMs, facts, cancelMs: undefined }
      const hold = await runs.hold(batch, caller, checks.sum, waitLimitsOf(incoming, settings.options))
      const { group, vendor_routes, team_group } = caller.token
      await runs.begin(batch, hold, most, {
        models: checks.batched,
        localModels: checks.local,
        groups: checks.groups,
        priceVersion: settings.priceVersion,
        quotaPerUnit: settings.options.quota_per_unit,
        routing: { token: { group, vendor_routes, team_group }, user: { group: caller.user.group } },
      })
      return batch
    } catch (error) {
      await batches.removeInput({ id, userId }).catch(() => {})
      throw error
    }
  }

  async list(api: BatchApi, incoming: IncomingCall, caller: Caller): Promise<void> {
    const query = readQuery(incoming)
    const limit = limitIn(query, MAX_LISTED[api], USUALLY_LISTED)
    const before = api === 'messages' ? (query.get('before_id') ?? undefined) : undefined
    const after = before ?? query.get(api === 'messages' ? 'after_id' : 'after') ?? undefined
    const order = before !== undefined ? 'asc' : api === 'openai' ? orderIn(query) : 'desc'
    await beginReading(this.#services.reads, incoming, caller)
    const page = { userId: caller.user.id, api, after, order, limit } as const
    const found = await this.#services.batches.list(page)
    const batches = before === undefined ? found.batches : found.batches.toReversed()
    const ids = { first_id: batches[0]?.id ?? null, last_id: batches.at(-1)?.id ?? null }
    if (api === 'openai')
      return answer(incoming, {
        object: 'list',
        data: batches.map(batchObject),
        ...ids,
        has_more: found.hasMore,
      })
    const data = batches.map((batch) => this.#messageObject(batch, incoming))
    answer(incoming, { data, has_more: found.hasMore, ...ids }, 'messages')
  }

  async retrieve(api: BatchApi, incoming: IncomingCall, caller: Caller, id: string): Promise<void> {
    await beginReading(this.#services.reads, incoming, caller)
    const batch = await this.#services.batches.findOf(api, caller.user.id, id)
    answer(incoming, this.#object(api, batch, incoming), api)
  }

  async cancel(api: BatchApi, incoming: IncomingCall, caller: Caller, id: string): Promise<void> {
    const { batches, runs } = this.#services
    const batch = await batches.findOf(api, caller.user.id, id)
    if (batch.facts.ending) throw invalid('this batch has ended and cannot be cancelled')
    const cancelMs = batch.cancelMs ?? Date.now()
    if (batch.cancelMs === undefined) await batches.cancel(batch, cancelMs)
    runs.cancel(id)
    answer(incoming, this.#object(api, { ...batch, cancelMs }, incoming), api)
  }

  /** Deletes a message batch that has ended. */
  async remove(incoming: IncomingCall, caller: Caller, id: string): Promise<void> {
    const { batches } = this.#services
    const batch = await batches.findOf('messages', caller.user.id, id)
    if (batch.facts.endedMs === undefined) throw invalid('this batch has not ended; cancel it first')
    await batches.remove(batch)
    answer(incoming, { id, type: 'message_batch_deleted' }, 'messages')
  }

  /** Sends the results of a message batch. */
  async results(incoming: IncomingCall, caller: Caller, id: string): Promise<void> {
    await beginReading(this.#services.reads, incoming, caller, PARTS_BYTES)
    const { batches } = this.#services
    const batch = await batches.findOf('messages', caller.user.id, id)
    if (batch.facts.endedMs === undefined)
      throw new GatewayError('not_found', 'this batch has no results before it has ended')
    const found = await batches.resultsOf(batch)
    if (!found) throw new GatewayError('not_found', 'the results of this batch have expired')
    const headers = {
      ...answerHeaders(incoming.id, 'messages'),
      'content-type': 'application/x-jsonl',
      'content-length': String(found.bytes),
      'x-content-type-options': 'nosniff',
      'cache-control': 'no-store',
    }
    await sendResponsePieces(incoming.response, headers, found.pieces)
  }

  #object(api: BatchApi, batch: Batch, incoming: IncomingCall): object {
    return api === 'openai' ? batchObject(batch) : this.#messageObject(batch, incoming)
  }

  #messageObject(batch: Batch, { request }: IncomingCall): object {
    const { options } = this.#services.settings()
    // A batch that was just made or cancelled has no results: a wrong `Host` must not turn its answer into an error.
    const origin = batch.facts.endedMs === undefined ? '' : publicOrigin(request, options)
    const resultsUrl = `${origin}${options.base_path}/v1/messages/batches/${batch.id}/results`
    return messageBatchObject(batch, resultsUrl, Date.now())
  }
}

async function* bytesOf({ bytes, parts }: FormBody): AsyncGenerator<Buffer, void, undefined> {
  for (let at = 0, end = parts[0]?.end ?? 0; at < end; ) {
    const piece = await readStoredBytes(bytes, at, end - at)
    at += piece.length
    yield piece
  }
}

function headersOfLines({ request: { headers } }: IncomingCall): Readonly<Record<string, string>> {
  return Object.fromEntries(
    HEADERS_OF_LINES.flatMap((name) => {
      const value = headers[name]
      return typeof value === 'string' ? [[name, value]] : []
    }),
  )
}

function readSubmission(
  bytes: Buffer,
  { options }: Settings,
): Omit<Submission, 'api' | 'lines' | 'inputFile'> & { readonly inputFile: string } {
  const scan = scanObject(bytes)
  NAMES.check(scan)
  const value = (name: string): unknown => (scan.has(name) ? scan.value(name) : undefined)
  const [inputFile, endpoint, window] = [
    value('input_file_id'),
    value('endpoint'),
    value('completion_window'),
  ]
  if (typeof inputFile !== 'string') throw invalid('input_file_id: expected the id of a file')
  const paths = Object.keys(LINE_ENDPOINTS).filter((path) => path !== '/v1/messages')
  if (typeof endpoint !== 'string' || !paths.includes(endpoint))
    throw invalid(`endpoint: expected one of ${paths.join(', ')}`)
  if (window !== '24h') throw invalid('completion_window: expected "24h"')
  const metadata = metadataIn(value('metadata'))
  const expiry = value('output_expires_after') ?? undefined
  const stated = asRecord(expiry)
  if (expiry !== undefined && !stated) throw invalid('output_expires_after: expected an object')
  return {
    path: endpoint as LinePath,
    inputFile,
    metadata,
    keepMs: stated
      ? expiryMs('output_expires_after', stated['anchor'], stated['seconds'], options.files.keep)
      : options.files.keep,
    mayBeLocal: options.local_batches || metadata?.['allow_local'] === 'true',
  }
}

function metadataIn(given: unknown): Readonly<Record<string, string>> | null {
  if (given === undefined || given === null) return null
  const entries = Object.entries(asRecord(given) ?? {})
  const isFitting =
    asRecord(given) !== undefined &&
    entries.length <= MAX_ENTRIES &&
    entries.every(
      ([name, text]) =>
        fitsInCodePoints(name, MAX_METADATA_NAME) &&
        typeof text === 'string' &&
        fitsInCodePoints(text, MAX_METADATA_TEXT),
    )
  if (!isFitting)
    throw invalid(
      `metadata: expected an object with at most ${MAX_ENTRIES} texts of at most ${MAX_METADATA_TEXT} characters, with names of at most ${MAX_METADATA_NAME}`,
    )
  return Object.fromEntries(entries) as Record<string, string>
}
