import type { Upstream } from '../upstream.ts'
import { type Fields, asFields, asString } from '../fields.ts'
import { malformed, Refusal } from '../refusal.ts'
import { BatchWork, type LineAnswer, LineError, type LineFormat, newId } from './batch-work.ts'
import type { Behaviour, StepFault } from './behaviour.ts'
import { type Answer, type Exchange, jsonOf, pageAfter, type Route, serveRoutes } from './exchange.ts'
import { receiveForm } from './form.ts'
import { estimateTokens } from '../tokens.ts'
import { isGood, type Phase, type SimulatedBatch } from './simulated-batch.ts'
import type { StoredContent } from './stored-contents.ts'
import type { BatchApi } from './serve-batches.ts'

/** What differs between OpenAI and Azure. */
interface Vendor {
  /** The paths before `/files` and `/batches`. */
  readonly base: string
  readonly maxLines: number
  /** OpenAI's path for an endpoint of this vendor. */
  readonly endpointOf: (endpoint: string) => string
  /** Whether uploaded files are checked before batches can use them. */
  readonly checksFiles: boolean
}

const OPENAI: Vendor = {
  base: '/v1',
  maxLines: 50_000,
  endpointOf: (endpoint) => endpoint,
  checksFiles: false,
}

/** Azure's paths have the version in the query, or `/v1`; lines name endpoints with or without it. */
const AZURE: Vendor = {
  base: '/openai(?:/v1)?',
  maxLines: 100_000,
  endpointOf: (endpoint) => (endpoint.startsWith('/v1/') ? endpoint : `/v1${endpoint}`),
  checksFiles: true,
}

interface UploadedFile {
  readonly id: string
  readonly account: string
  readonly name: string
  readonly purpose: string
  readonly createdMs: number
  readonly content: StoredContent
}

/** Files of results, by which of the results they have. */
const OUTPUTS = { output: 'good', error: 'bad' } as const
type OutputKind = keyof typeof OUTPUTS

/** Options of a provider with OpenAI's API for batches. */
export interface OpenAiBatchOptions {
  readonly vendor: 'openai' | 'azure'
  /** The upstreams that answer lines, by the path of their endpoint. */
  readonly endpoints: ReadonlyMap<string, Upstream>
  readonly behaviour: Behaviour
  readonly now: () => number
}

/** OpenAI's files and batches, on OpenAI itself or on Azure. */
export class OpenAiBatches implements BatchApi {
  readonly work: BatchWork
  readonly #vendor: Vendor
  readonly #routes: readonly Route[]
  readonly #files = new Map<string, UploadedFile>()
  /** Ids of files of results that were deleted. */
  readonly #deletedOutputs = new Set<string>()

  constructor({ vendor, endpoints, behaviour, now }: OpenAiBatchOptions) {
    this.#vendor = vendor === 'azure' ? AZURE : OPENAI
    this.work = new BatchWork({ format: formatOf(this.#vendor, endpoints), behaviour, now })
    const path = (rest: string): RegExp => new RegExp(`^${this.#vendor.base}${rest}$`)
    const file = path('/files/([^/]+)')
    const batch = path('/batches/([^/]+)')
    this.#routes = [
      { method: 'POST', path: path('/files'), step: 'upload', answer: (exchange) => this.#upload(exchange) },
      { method: 'GET', path: path('/files'), step: 'files', answer: (exchange) => this.#listFiles(exchange) },
      {
        method: 'GET',
        path: file,
        step: 'file',
        answer: ({ account }, [id]) => this.#fileAnswer(account, id),
      },
      {
        method: 'DELETE',
        path: file,
        step: 'delete_file',
        answer: ({ account }, [id]) => this.#removeFile(account, id),
      },
      {
        method: 'GET',
        path: path('/files/([^/]+)/content'),
        step: 'content',
        answer: ({ account }, [id]) => this.#content(account, id),
      },
      {
        method: 'POST',
        path: path('/batches'),
        step: 'create',
        answer: async (exchange, _, fault) => {
          const { account, request } = exchange
          return { json: this.#object(this.#create(account, await jsonOf(request), fault)) }
        },
      },
      { method: 'GET', path: path('/batches'), step: 'list', answer: (exchange) => this.#list(exchange) },
      {
        method: 'GET',
        path: batch,
        step: 'get',
        answer: ({ account }, [id = '']) => ({ json: this.#object(this.work.find(account, id)) }),
      },
      {
        method: 'POST',
        path: path('/batches/([^/]+)/cancel'),
        step: 'cancel',
        answer: ({ account }, [id = '']) => {
          const found = this.work.find(account, id)
          if (!found.cancel()) throw malformed(`Cannot cancel a batch with status '${found.phase}'.`)
          return { json: this.#object(found) }
        },
      },
    ]
  }

  serve(exchange: Exchange): Promise<boolean> {
    return serveRoutes(this.#routes, this.work.control, 'chat', exchange)
  }

  async #upload({ account, request }: Exchange): Promise<Answer> {
    const { contents, now } = this.work
    const { texts, file } = await receiveForm(request, request.headers['content-type'] ?? '', (content) =>
      contents.keep(content),
    )
    const purpose = texts.get('purpose')
    if (!file || purpose === undefined) {
      if (file) await contents.remove(file.kept)
      throw malformed("'file' and 'purpose' are required properties")
    }
    const uploaded = {
      id: newId('file-'),
      account,
      name: file.name,
      purpose,
      createdMs: now(),
      content: file.kept,
    }
    this.#files.set(uploaded.id, uploaded)
    return { json: this.#fileObject(uploaded) }
  }

  #listFiles({ account, query }: Exchange): Answer {
    const purpose = query.get('purpose')
    const own = [...this.#files.values()]
      .filter((file) => file.account === account && (purpose === null || file.purpose === purpose))
      .map((file) => this.#fileObject(file))
    const ordered = query.get('order') === 'asc' ? own : own.toReversed()
    return { json: listOf(ordered, query, 10_000) }
  }

  #fileAnswer(account: string, id = ''): Answer {
    const file = this.#files.get(id)
    if (file?.account === account) return { json: this.#fileObject(file) }
    const { batch, kind } = this.#outputOf(account, id)
    return { json: this.#outputObject(batch, kind, id) }
  }

  #content(account: string, id = ''): Answer {
    const contentType = 'application/octet-stream'
    const file = this.#files.get(id)
    if (file?.account === account) return { pieces: this.work.contents.read(file.content), contentType }
    const { batch, kind } = this.#outputOf(account, id)
    return { pieces: this.work.results(batch, OUTPUTS[kind]), contentType }
  }

  async #removeFile(account: string, id = ''): Promise<Answer> {
    const file = this.#files.get(id)
    if (file?.account === account) {
      this.#files.delete(id)
      await this.work.contents.remove(file.content)
    } else {
      this.#outputOf(account, id)
      this.#deletedOutputs.add(id)
    }
    return { json: { id, object: 'file', deleted: true } }
  }

  /** The batch whose results the file with this id has. Throws `Refusal` if the account has no such file. */
  #outputOf(account: string, id: string): { readonly batch: SimulatedBatch; readonly kind: OutputKind } {
    const [, kind, own = ''] = /^file-(output|error)-(\w+)$/.exec(id) ?? []
    const batch = this.work.batches(account).find(({ made }) => made.id === `batch_${own}`)
    if (!batch || this.#deletedOutputs.has(id) || this.#outputId(batch, kind as OutputKind) === null)
      throw new Refusal('unknown_object', `No such File object: ${id}`)
    return { batch, kind: kind as OutputKind }
  }

  /** The id of a file of results; null if there are none. */
  #outputId(batch: SimulatedBatch, kind: OutputKind): string | null {
    if (!batch.isOver || !hasResults(batch, kind)) return null
    return `file-${kind}-${batch.made.id.slice('batch_'.length)}`
  }

  #create(
    account: string,
    { input_file_id: inputId, endpoint, completion_window: window, metadata }: Fields,
    fault?: StepFault,
  ): SimulatedBatch {
    const file = this.#files.get(asString(inputId))
    if (file?.account !== account)
      throw malformed(`Invalid 'input_file_id': ${asString(inputId)} was not found`)
    if (file.purpose !== 'batch') throw malformed("Invalid 'input_file_id': its purpose is not 'batch'")
    if (this.#statusOf(file) !== 'processed')
      throw malformed("Invalid 'input_file_id': it is not processed yet")
    if (window !== '24h') throw malformed("Invalid 'completion_window': expected '24h'")
    if (metadata !== undefined && metadata !== null) checkMetadata(asFields(metadata))
    const stated = { endpoint: asString(endpoint), inputId: file.id, metadata: metadata ?? null }
    const made = {
      id: newId('batch_'),
      account,
      createdMs: this.work.now(),
      endpoint: this.#vendor.endpointOf(stated.endpoint),
      stated,
      tokens: estimateTokens(file.content.bytes),
    }
    return this.work.make(made, file.content, fault)
  }

  #list({ account, query }: Exchange): Answer {
    const objects = this.work.batches(account).map((batch) => this.#object(batch))
    return { json: listOf(objects, query, 20) }
  }

  #statusOf({ createdMs }: UploadedFile): string {
    const { now, control } = this.work
    return this.#vendor.checksFiles && now() < createdMs + control.behaviour.pending_ms
      ? 'pending'
      : 'processed'
  }

  #fileObject(file: UploadedFile): Fields {
    const { id, name, purpose, createdMs, content } = file
    const head = { object: 'file', id, purpose, filename: name, bytes: content.bytes }
    return { ...head, created_at: seconds(createdMs), expires_at: null, status: this.#statusOf(file) }
  }

  #outputObject(batch: SimulatedBatch, kind: OutputKind, id: string): Fields {
    return {
      object: 'file',
      id,
      purpose: 'batch_output',
      filename: `${batch.made.id}_${kind}.jsonl`,
      bytes: batch.results?.bytes ?? 0,
      created_at: seconds(batch.endedMs),
      expires_at: null,
      status: 'processed',
    }
  }

  #object(batch: SimulatedBatch): Fields {
    const { made, phase, errors, lines, done, billed } = batch
    const failed = done.filter(({ isError }) => isError).length
    const at = (...phases: Phase[]): number | null =>
      phases.includes(phase) ? seconds(batch.endedMs ?? batch.cancelMs) : null
    const isFailed = phase === 'failed'
    return {
      id: made.id,
      object: 'batch',
      endpoint: made.stated.endpoint,
      model: lines[0]?.model ?? null,
      errors: isFailed ? { object: 'list', data: errors } : null,
      input_file_id: made.stated.inputId,
      completion_window: '24h',
      status: phase,
      output_file_id: this.#outputId(batch, 'output'),
      error_file_id: this.#outputId(batch, 'error'),
      created_at: seconds(made.createdMs),
      in_progress_at: isFailed ? null : seconds(batch.startedMs),
      expires_at: seconds(batch.expiresMs),
      finalizing_at: seconds(batch.finalizingMs),
      completed_at: at('completed'),
      failed_at: at('failed'),
      expired_at: at('expired'),
      cancelling_at: seconds(batch.cancelMs),
      cancelled_at: at('cancelled'),
      request_counts: {
        total: isFailed ? 0 : lines.length,
        completed: done.length - failed,
        failed,
      },
      usage: {
        input_tokens: billed.input,
        input_tokens_details: { cached_tokens: billed.cached },
        output_tokens: billed.output,
        output_tokens_details: { reasoning_tokens: billed.reasoning },
        total_tokens: billed.input + billed.output,
      },
      metadata: made.stated.metadata,
    }
  }
}

function hasResults(batch: SimulatedBatch, kind: OutputKind): boolean {
  for (const result of batch.resultsInOrder()) if (isGood(result) === (kind === 'output')) return true
  return false
}

function formatOf(vendor: Vendor, endpoints: ReadonlyMap<string, Upstream>): LineFormat {
  return {
    maxLines: vendor.maxLines,
    hasOneModel: true,
    hasUniqueIds: true,
    upstreamOf: (endpoint) => endpoints.get(endpoint),
    readLine: ({ custom_id: customId, method, url, body }, { endpoint }) => {
      if (typeof customId !== 'string' || customId === '')
        throw new LineError(
          'missing_required_parameter',
          "Missing required parameter: 'custom_id'.",
          'custom_id',
        )
      if (method !== 'POST') throw new LineError('invalid_method', "The method must be 'POST'.", 'method')
      if (vendor.endpointOf(asString(url)) !== endpoint)
        throw new LineError('mismatched_url', 'The URL does not match the endpoint of the batch.', 'url')
      return { customId, body: asFields(body) }
    },
    answered: ({ customId, status, answer }: LineAnswer) => ({
      id: newId('batch_req_'),
      custom_id: customId,
      response: { status_code: status, request_id: newId('req_'), body: answer },
      error: null,
    }),
    unanswered: (customId, how) => ({
      id: newId('batch_req_'),
      custom_id: customId,
      response: null,
      error: {
        code: `batch_${how}`,
        message:
          how === 'expired'
            ? 'This request could not be executed before the completion window expired.'
            : 'This request was not executed, because the batch was cancelled.',
      },
    }),
  }
}

function checkMetadata(metadata: Fields): void {
  const entries = Object.entries(metadata)
  const isValid = entries.every(
    ([name, text]) => name.length <= 64 && typeof text === 'string' && text.length <= 512,
  )
  if (!isValid || entries.length > 16)
    throw malformed("Invalid 'metadata': expected up to 16 texts of 512 characters, with names of 64")
}

function listOf(objects: readonly Fields[], query: URLSearchParams, usual: number): Fields {
  const limit = Number(query.get('limit') ?? usual)
  const { page, hasMore } = pageAfter(objects, ({ id }) => asString(id), query.get('after'), limit)
  const ids = { first_id: page[0]?.id ?? null, last_id: page.at(-1)?.id ?? null }
  return { object: 'list', data: page, ...ids, has_more: hasMore }
}

function seconds(ms: number | undefined): number | null {
  return ms === undefined ? null : Math.floor(ms / 1_000)
}
