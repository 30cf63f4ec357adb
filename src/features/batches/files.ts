import { sendResponsePieces } from '@sluice/http1'
import type { FormPart } from '@sluice/wire/multipart'
import type { Caller } from '../../accounts/authentication/caller.ts'
import type { BodyReader, FormBody } from '../../call/body-reader.ts'
import type { CallLimits } from '../../call/call-limits.ts'
import { readStoredBytes, type StoredBytes } from '../../call/form-body.ts'
import type { LifeCycle } from '../../call/life-cycle.ts'
import type { IncomingCall } from '../../call/incoming-call.ts'
import type { Settings } from '../../domain/settings.ts'
import { fitsInCodePoints } from '../../domain/text-length.ts'
import { GatewayError } from '../../errors.ts'
import { answerHeaders } from '../../http/answer-headers.ts'
import type { StoreReads } from '../../limits/store-reads.ts'
import { filesFull } from '../../store/files-full.ts'
import { filesNotShared } from '../../store/files-not-shared.ts'
import {
  answer,
  beginReading,
  expiryMs,
  invalid,
  limitIn,
  orderIn,
  quoted,
  readQuery,
  PARTS_BYTES,
  seconds,
} from './exchange.ts'
import { type FileStore, MAX_FILE_BYTES, newFileId, type StoredFile } from './file-store.ts'

/** Maximum bytes of a form around the file: fields, boundaries and headers. */
const MAX_FORM_BYTES = 1_048_576
/** Default and maximum number of files in one list. */
const MAX_LISTED = 10_000
const MAX_NAME_LENGTH = 512

/** Services that the endpoints for files need. */
export interface FileServices {
  readonly settings: () => Settings
  readonly files: FileStore
  readonly bodies: BodyReader
  readonly limits: CallLimits
  readonly reads: StoreReads
  readonly lifeCycle: Pick<LifeCycle, 'read'>
  /** Whether all nodes of the database read and write the same files. */
  readonly hasSharedFiles: () => boolean
}

/** The caller's files: `docs/batches.md: Files`. */
export class Files {
  readonly #services: FileServices
  /** Bytes of the uploads under way on this node, by user. */
  readonly #arriving = new Map<number, number>()
  /** Files that are being stored, by user: until that is over, they may count both as kept and as under way. */
  readonly #storing = new Map<number, Promise<unknown>>()

  constructor(services: FileServices) {
    this.#services = services
  }

  /** Throws `files_not_shared` if other nodes may not find what this node keeps. */
  refuseUnshared(): void {
    if (this.#services.hasSharedFiles()) return
    throw filesNotShared()
  }

  /** Stores the file of a form. It is found once all of it is stored. */
  async upload(incoming: IncomingCall, caller: Caller): Promise<void> {
    const { bodies, lifeCycle } = this.#services
    const settings = this.#services.settings()
    const limit = MAX_FILE_BYTES + MAX_FORM_BYTES
    const length = Number(incoming.request.headers['content-length'] ?? 0)
    if (length > limit) throw tooLarge()
    const userId = caller.user.id
    const announced = Math.max(0, length - MAX_FORM_BYTES)
    const room = new Room((bytes) => this.#arrive(userId, bytes))
    await this.#reserve(settings, userId, room, announced)
    try {
      const body = await bodies.readForm(incoming, { owner: { client: userId, key: caller.token.id }, limit })
      try {
        const run = (call: IncomingCall): Promise<void> => this.#store(call, caller, settings, body, room)
        const answer = lifeCycle.read(incoming, settings)
        await (answer ? answer({ body, incoming, caller, settings }, run) : run(incoming))
      } finally {
        body.release()
      }
    } finally {
      room.release()
    }
  }

  /** Counts an upload as under way with this size. Rejects with `files_full` if the user would keep too much with it. */
  async #reserve({ options }: Settings, userId: number, room: Room, size: number): Promise<void> {
    const { most } = options.files
    for (;;) {
      const storing = this.#storing.get(userId)
      const keptBytes = await this.#services.files.bytesOf(userId)
      const kept = keptBytes + (this.#arriving.get(userId) ?? 0) - room.bytes
      if (kept + size <= most) return room.resize(size)
      if (!storing) throw filesFull(kept, most)
      await storing
    }
  }

  #arrive(userId: number, bytes: number): void {
    const arriving = (this.#arriving.get(userId) ?? 0) + bytes
    if (arriving > 0) this.#arriving.set(userId, arriving)
    else this.#arriving.delete(userId)
  }

  async #store(
    incoming: IncomingCall,
    caller: Caller,
    settings: Settings,
    { parts, bytes }: FormBody,
    room: Room,
  ): Promise<void> {
    if (incoming.unlessKept) throw incoming.unlessKept
    const { files, limits } = this.#services
    const { part, filename, expiresInMs } = readForm(parts, settings.options.files.keep)
    const size = part.end - part.start
    if (size > MAX_FILE_BYTES) throw tooLarge()
    await limits.enter(settings, caller, settings.models.get(''))
    const userId = caller.user.id
    // Refused before anything is written; the write checks it again, because other nodes may store files before it.
    await this.#reserve(settings, userId, room, size)
    const createdMs = Date.now()
    const id = newFileId()
    const expiresMs = createdMs + expiresInMs
    const file = { id, userId, filename, purpose: 'batch', bytes: size, createdMs, expiresMs } as const
    const stored = files.store(file, piecesOf(bytes, part)).finally(() => room.release())
    const all = Promise.allSettled([stored, this.#storing.get(userId)]).then(() => {
      if (this.#storing.get(userId) === all) this.#storing.delete(userId)
    })
    this.#storing.set(userId, all)
    await stored
    answer(incoming, fileObject(await files.find(userId, id)))
  }

  async list(incoming: IncomingCall, caller: Caller): Promise<void> {
    const query = readQuery(incoming)
    await beginReading(this.#services.reads, incoming, caller)
    const page = {
      userId: caller.user.id,
      purpose: query.get('purpose') ?? undefined,
      after: query.get('after') ?? undefined,
      order: orderIn(query),
      limit: limitIn(query, MAX_LISTED, MAX_LISTED),
    }
    const { files, hasMore } = await this.#services.files.list(page)
    const [first_id, last_id] = [files[0]?.id ?? null, files.at(-1)?.id ?? null]
    answer(incoming, { object: 'list', data: files.map(fileObject), first_id, last_id, has_more: hasMore })
  }

  async retrieve(incoming: IncomingCall, caller: Caller, id: string): Promise<void> {
    await beginReading(this.#services.reads, incoming, caller)
    answer(incoming, fileObject(await this.#services.files.find(caller.user.id, id)))
  }

  async content(incoming: IncomingCall, caller: Caller, id: string): Promise<void> {
    await beginReading(this.#services.reads, incoming, caller, PARTS_BYTES)
    const { files } = this.#services
    const file = await files.find(caller.user.id, id)
    const headers = {
      ...answerHeaders(incoming.id, 'chat'),
      'content-type': 'application/octet-stream',
      'content-length': String(file.bytes),
      'x-content-type-options': 'nosniff',
      'cache-control': 'no-store',
    }
    await sendResponsePieces(incoming.response, headers, files.content(file))
  }

  async remove(incoming: IncomingCall, caller: Caller, id: string): Promise<void> {
    const { files } = this.#services
    await files.find(caller.user.id, id)
    await files.remove(caller.user.id, id)
    answer(incoming, { id, object: 'file', deleted: true })
  }
}

/** The bytes of an upload that count as under way. */
class Room {
  bytes = 0
  readonly #count: (bytes: number) => void

  constructor(count: (bytes: number) => void) {
    this.#count = count
  }

  resize(bytes: number): void {
    this.#count(bytes - this.bytes)
    this.bytes = bytes
  }

  release(): void {
    this.resize(0)
  }
}

/** A file as clients see it. */
function fileObject({ id, filename, purpose, bytes, entry }: StoredFile): object {
  const created_at = seconds(entry.createdMs)
  const expires_at = seconds(entry.expiresMs)
  return { id, object: 'file', bytes, created_at, expires_at, filename, purpose, status: 'processed' }
}

/** What the form of an upload states. */
interface FileForm {
  readonly part: FormPart
  readonly filename: string
  readonly expiresInMs: number
}

function readForm(parts: readonly FormPart[], keepMs: number): FileForm {
  const texts = new Map<string, string>()
  const found: FormPart[] = []
  for (const part of parts) {
    const { name, filename, text } = part
    if (filename !== undefined) {
      if (name !== 'file') throw invalid(`expected the file in the field "file", not in ${quoted(name)}`)
      found.push(part)
    } else if (name === 'file') throw invalid('file: expected a file with a filename')
    else if (texts.has(name)) throw invalid(`${quoted(name)} is given twice`)
    else texts.set(name, text ?? '')
  }
  if (texts.get('purpose') !== 'batch') throw invalid('purpose: expected "batch"')
  const [part, ...others] = found
  if (!part || others.length > 0) throw invalid('expected one file, in the field "file"')
  if (part.end === part.start) throw invalid('file: the file is empty')
  const filename = part.filename ?? ''
  if (filename === '' || !fitsInCodePoints(filename, MAX_NAME_LENGTH))
    throw invalid(`file: expected a filename of 1 to ${MAX_NAME_LENGTH} characters`)
  return { part, filename, expiresInMs: expiryIn(texts, keepMs) }
}

function expiryIn(texts: ReadonlyMap<string, string>, keepMs: number): number {
  const given = texts.get('expires_after[seconds]')
  const seconds = given !== undefined && /^\d{1,12}$/.test(given) ? Number(given) : given
  return expiryMs('expires_after', texts.get('expires_after[anchor]'), seconds, keepMs)
}

async function* piecesOf(
  bytes: StoredBytes,
  { start, end }: FormPart,
): AsyncGenerator<Buffer, void, undefined> {
  for (let at = start; at < end; ) {
    const piece = await readStoredBytes(bytes, at, end - at)
    at += piece.length
    yield piece
  }
}

function tooLarge(): GatewayError {
  return new GatewayError('request_too_large', `the file is larger than ${MAX_FILE_BYTES} bytes`)
}
