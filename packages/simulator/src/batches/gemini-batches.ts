import { once } from 'node:events'
import { type Fields, asFields, asString } from '../fields.ts'
import { malformed, Refusal } from '../refusal.ts'
import { estimateTokens } from '../tokens.ts'
import type { Upstream } from '../upstream.ts'
import { BatchWork, type BatchWorkServices, type LineFormat, newId } from './batch-work.ts'
import type { StepFault } from './behaviour.ts'
import { type Answer, type Exchange, jsonOf, type Route, serveRoutes } from './exchange.ts'
import type { BatchApi } from './serve-batches.ts'
import type { Phase, SimulatedBatch } from './simulated-batch.ts'
import type { StoredContent } from './stored-contents.ts'

const MAX_LINES = 1_000_000
/** Milliseconds for which files are kept. */
const KEPT_MS = 48 * 3_600_000
const USUALLY_LISTED = 100
const TYPE = 'type.googleapis.com/google.ai.generativelanguage.v1main.GenerateContentBatch'

/** Gemini's words for phases. */
const STATE: Readonly<Record<Phase, string>> = {
  validating: 'BATCH_STATE_PENDING',
  in_progress: 'BATCH_STATE_RUNNING',
  finalizing: 'BATCH_STATE_RUNNING',
  cancelling: 'BATCH_STATE_RUNNING',
  completed: 'BATCH_STATE_SUCCEEDED',
  failed: 'BATCH_STATE_FAILED',
  expired: 'BATCH_STATE_EXPIRED',
  cancelled: 'BATCH_STATE_CANCELLED',
}
/** Codes of `google.rpc.Code` in the errors of operations. */
const ERRORS: Readonly<Partial<Record<Phase, { readonly code: number; readonly message: string }>>> = {
  cancelled: { code: 1, message: 'The batch was cancelled.' },
  expired: { code: 4, message: 'The batch has expired.' },
}

interface UploadedFile {
  readonly name: string
  readonly account: string
  readonly displayName: string
  readonly mimeType: string
  readonly createdMs: number
  readonly content: StoredContent
}

/** An upload in several requests. */
interface Upload extends Pick<UploadedFile, 'account' | 'displayName' | 'mimeType'> {
  readonly pieces: StoredContent[]
}

/** Files and batches of the Gemini API. */
export class GeminiBatches implements BatchApi {
  readonly work: BatchWork
  readonly #routes: readonly Route[]
  readonly #files = new Map<string, UploadedFile>()
  readonly #uploads = new Map<string, Upload>()

  constructor(upstream: Upstream, services: Omit<BatchWorkServices, 'format'>) {
    this.work = new BatchWork({ format: formatOf(upstream), ...services })
    const version = '/v1(?:beta)?'
    const path = (rest: string): RegExp => new RegExp(`^${version}/${rest}$`)
    const batch = path('(batches/[^/:]+)')
    const file = path('(files/[^/:]+)')
    const named = ({ account }: Exchange, name = ''): SimulatedBatch => this.work.find(account, name)
    this.#routes = [
      // Uploads may be continued with PUT as well.
      ...(['POST', 'PUT'] as const).map(
        (method): Route => ({
          method,
          path: new RegExp(`^/upload${version}/files$`),
          step: 'upload',
          isOpen: true,
          answer: (exchange) => this.#upload(exchange),
        }),
      ),
      { method: 'GET', path: path('files'), step: 'files', answer: (exchange) => this.#listFiles(exchange) },
      {
        method: 'GET',
        path: file,
        step: 'file',
        answer: ({ account }, [name]) => ({ json: this.#fileObject(this.#file(account, name)) }),
      },
      {
        method: 'DELETE',
        path: file,
        step: 'delete_file',
        answer: async ({ account }, [name = '']) => {
          const found = this.#file(account, name)
          this.#files.delete(name)
          await this.work.contents.remove(found.content)
          return { json: {} }
        },
      },
      {
        method: 'GET',
        path: new RegExp(`^(?:/download)?${version}/(files/[^/:]+):download$`),
        step: 'content',
        answer: ({ account }, [name]) => this.#download(account, name),
      },
      {
        method: 'POST',
        path: path('models/([^/:]+):batchGenerateContent'),
        step: 'create',
        answer: (exchange, [model = ''], fault) => this.#create(exchange, model, fault),
      },
      { method: 'GET', path: path('batches'), step: 'list', answer: (exchange) => this.#list(exchange) },
      {
        method: 'GET',
        path: batch,
        step: 'get',
        answer: (exchange, [name]) => ({ json: operationOf(named(exchange, name)) }),
      },
      {
        method: 'DELETE',
        path: batch,
        step: 'delete',
        answer: async (exchange, [name]) => {
          await this.work.forget(named(exchange, name))
          return { json: {} }
        },
      },
      {
        method: 'POST',
        path: path('(batches/[^/:]+):cancel'),
        step: 'cancel',
        answer: (exchange, [name]) => {
          if (!named(exchange, name).cancel()) throw malformed('The batch has ended.')
          return { json: {} }
        },
      },
    ]
  }

  serve(exchange: Exchange): Promise<boolean> {
    return serveRoutes(this.#routes, this.work.control, 'gemini', exchange)
  }

  /** An upload in one request, the start of one in several, or a part of it. */
  async #upload(exchange: Exchange): Promise<Answer> {
    const { request, query, account } = exchange
    const id = query.get('upload_id')
    if (id !== null) return this.#continueUpload(exchange, id)
    if (account === '') throw new Refusal('missing_key', 'No API key was given')
    const { headers } = request
    if (headers['x-goog-upload-protocol'] !== 'resumable' && query.get('uploadType') !== 'resumable') {
      const content = await this.work.contents.keep(request)
      return { json: { file: this.#keepFile(content, account, '', headers['content-type']) } }
    }
    const { file } = await jsonOf(request)
    const {
      displayName,
      display_name: name = displayName,
      mimeType = headers['x-goog-upload-header-content-type'],
    } = asFields(file)
    const begun = newId('')
    const upload = { account, displayName: asString(name), mimeType: asString(mimeType), pieces: [] }
    this.#uploads.set(begun, upload)
    const { pathname } = new URL(request.url ?? '', 'http://localhost')
    const url = `http://${headers.host ?? 'localhost'}${pathname}?upload_id=${begun}&upload_protocol=resumable`
    return { json: {}, headers: { 'x-goog-upload-url': url, 'x-goog-upload-status': 'active' } }
  }

  async #continueUpload({ request }: Exchange, id: string): Promise<Answer> {
    const upload = this.#uploads.get(id)
    if (!upload) throw new Refusal('unknown_object', 'The upload is not known')
    const command = asString(request.headers['x-goog-upload-command'] ?? 'upload, finalize')
    const { contents } = this.work
    const received = upload.pieces.reduce((sum, { bytes }) => sum + bytes, 0)
    const status = { 'x-goog-upload-size-received': String(received) }
    if (command.includes('upload')) {
      const offset = Number(request.headers['x-goog-upload-offset'] ?? 0)
      if (offset !== received) {
        request.resume()
        if (!request.complete) await once(request, 'end')
        throw malformed(`The offset is ${offset}, but ${received} bytes were received`)
      }
      upload.pieces.push(await contents.keep(request))
    }
    if (!command.includes('finalize'))
      return { json: {}, headers: { ...status, 'x-goog-upload-status': 'active' } }
    const whole = await contents.keep(joined(upload.pieces.map((piece) => contents.read(piece))))
    await Promise.all(upload.pieces.map((piece) => contents.remove(piece)))
    this.#uploads.delete(id)
    const file = this.#keepFile(whole, upload.account, upload.displayName, upload.mimeType)
    return { json: { file }, headers: { 'x-goog-upload-status': 'final' } }
  }

  #keepFile(content: StoredContent, account: string, displayName: string, mimeType = ''): Fields {
    const name = `files/${newId('')}`
    const file = { name, account, displayName, mimeType, createdMs: this.work.now(), content }
    this.#files.set(name, file)
    return this.#fileObject(file)
  }

  #file(account: string, name = ''): UploadedFile {
    const file = this.#files.get(name)
    if (file?.account !== account) throw new Refusal('unknown_object', `There is no file ${name}`)
    return file
  }

  #listFiles({ account, query }: Exchange): Answer {
    const own = [...this.#files.values()].filter((file) => file.account === account).toReversed()
    const { page, next } = pageOf(own, query)
    return { json: { files: page.map((file) => this.#fileObject(file)), ...next } }
  }

  /** The content of a file of results, or of an uploaded file. */
  #download(account: string, name = ''): Answer {
    const batch = this.work.batches(account).find((one) => responsesFileOf(one) === name)
    const contentType = 'application/octet-stream'
    if (batch) return { pieces: this.work.results(batch), contentType }
    return { pieces: this.work.contents.read(this.#file(account, name).content), contentType }
  }

  async #create({ account, request }: Exchange, model: string, fault?: StepFault): Promise<Answer> {
    const { batch } = await jsonOf(request)
    const {
      displayName,
      display_name: display = displayName,
      inputConfig,
      input_config: input = inputConfig,
    } = asFields(batch)
    const { fileName, file_name: name = fileName } = asFields(input)
    if (typeof name !== 'string') throw malformed('batch.inputConfig.fileName: a file is required')
    const file = this.#file(account, name)
    const tokens = estimateTokens(file.content.bytes)
    const made = {
      id: `batches/${newId('')}`,
      account,
      createdMs: this.work.now(),
      endpoint: `/models/${model}:generateContent`,
      stated: { model, displayName: asString(display), fileName: name },
      tokens,
      losesExpired: true as const,
    }
    return { json: operationOf(this.work.make(made, file.content, fault)) }
  }

  #list({ account, query }: Exchange): Answer {
    const { page, next } = pageOf(this.work.batches(account), query)
    return { json: { operations: page.map(operationOf), ...next } }
  }

  #fileObject({ name, displayName, mimeType, createdMs, content }: UploadedFile): Fields {
    return {
      name,
      displayName,
      mimeType: mimeType === '' ? 'application/octet-stream' : mimeType,
      sizeBytes: String(content.bytes),
      createTime: time(createdMs),
      updateTime: time(createdMs),
      expirationTime: time(createdMs + KEPT_MS),
      uri: `https://generativelanguage.googleapis.com/v1beta/${name}`,
      state: 'ACTIVE',
      source: 'UPLOADED',
    }
  }
}

function formatOf(upstream: Upstream): LineFormat {
  return {
    maxLines: MAX_LINES,
    upstreamOf: () => upstream,
    readLine: ({ key, request }, { stated }) => ({
      customId: asString(key),
      body: { ...asFields(request), model: stated.model },
    }),
    answered: ({ customId, status, answer }) =>
      status === 200 ? { key: customId, response: answer } : { key: customId, error: asFields(answer.error) },
    unanswered: (customId, how) => ({
      key: customId,
      error: { code: how === 'expired' ? 4 : 1, message: `The request was not executed: ${how}.` },
    }),
  }
}

/** The file with the results; undefined if there are none, as for batches that have expired. */
function responsesFileOf(batch: SimulatedBatch): string | undefined {
  const { phase, made, done } = batch
  const hasResults = phase === 'completed' || (phase === 'cancelled' && done.length > 0)
  return hasResults ? `files/batch-${made.id.slice('batches/'.length)}` : undefined
}

function operationOf(batch: SimulatedBatch): Fields {
  const { made, phase, lines, done, isOver, errors } = batch
  const failed = done.filter(({ isError }) => isError).length
  const responsesFile = responsesFileOf(batch)
  const [first] = errors
  const error = phase === 'failed' ? { code: 3, message: first?.message ?? '' } : ERRORS[phase]
  const output = responsesFile !== undefined && { responsesFile }
  const metadata = {
    '@type': TYPE,
    model: `models/${asString(made.stated.model)}`,
    displayName: made.stated.displayName,
    name: made.id,
    inputConfig: { fileName: made.stated.fileName },
    ...(output && { output }),
    createTime: time(made.createdMs),
    ...(isOver && { endTime: time(batch.endedMs ?? 0) }),
    updateTime: time(batch.endedMs ?? batch.cancelMs ?? batch.startedMs ?? made.createdMs),
    batchStats: {
      requestCount: String(lines.length),
      ...(done.length > failed && { successfulRequestCount: String(done.length - failed) }),
      ...(failed > 0 && { failedRequestCount: String(failed) }),
      ...(lines.length > done.length && { pendingRequestCount: String(lines.length - done.length) }),
    },
    state: STATE[phase],
  }
  return {
    name: made.id,
    metadata,
    ...(isOver && { done: true }),
    ...(error ? { error } : output && { response: { '@type': `${TYPE}Output`, ...output } }),
  }
}

/** A page of a list whose token is the number of items before it. */
function pageOf<Item>(
  items: readonly Item[],
  query: URLSearchParams,
): { readonly page: readonly Item[]; readonly next: Fields } {
  const start = Number(query.get('pageToken') ?? 0)
  const size = Number(query.get('pageSize') ?? USUALLY_LISTED)
  const end = start + size
  return { page: items.slice(start, end), next: end < items.length ? { nextPageToken: String(end) } : {} }
}

async function* joined(contents: readonly AsyncIterable<Buffer>[]): AsyncGenerator<Buffer, void, undefined> {
  for (const content of contents) yield* content
}

function time(ms: number): string {
  return new Date(ms).toISOString()
}
