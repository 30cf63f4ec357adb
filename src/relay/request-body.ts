import type { Caller } from '../accounts/authentication/caller.ts'
import type { Settings } from '../domain/settings.ts'
import type { StoreRead, StoreReads } from '../limits/store-reads.ts'
import { scanObject } from '@sluice/wire/json/json-scan'
import { isForm } from '@sluice/wire/multipart/boundary'
import type { Body, BodyReader } from './body-reader.ts'
import type { Dialect, Reader, ParsedRequest } from './dialects/dialect.ts'
import type { FormDialect } from './dialects/media/media-dialect.ts'
import type { IncomingCall } from './incoming-call.ts'

/** How an endpoint accepts requests: as JSON, as forms, or as both. */
export type RequestForms =
  | { readonly json: Dialect; readonly form?: FormDialect }
  | { readonly json?: undefined; readonly form: FormDialect }

/** A request whose body was read. Its memory and disk space are held until `release`. */
export interface OpenedRequest extends Body {
  /** Begins a read of the store, whose memory belongs to that of the body. */
  readonly readStore: () => StoreRead
  readonly dialect: Omit<Dialect, 'read'>
  /** Checks the request. Throws `invalid_request` that names the field. */
  read(reader: Reader): ParsedRequest | Promise<ParsedRequest>
}

const NO_BYTES = Buffer.alloc(0)

/** Reads a request's body, JSON or a form. Rejects with the error for the client. */
export async function openRequest(
  { bodies, reads }: { readonly bodies: BodyReader; readonly reads: StoreReads },
  { json, form }: RequestForms,
  incoming: IncomingCall,
  { token, user }: Caller,
  { options }: Settings,
): Promise<OpenedRequest> {
  const { headers } = incoming.request
  const bounds = { owner: { client: user.id, key: token.id }, limit: options.body_limit }
  if (form && (!json || isForm(headers['content-type']))) {
    const body = await bodies.readForm(incoming, bounds)
    const { allocation, hold, release } = body
    return {
      dialect: form,
      bytes: NO_BYTES,
      allocation,
      hold,
      readStore: () => reads.of(user.id, allocation),
      release,
      read(reader) {
        for (const { name } of body.parts) form.names.checkName(name)
        return served(form.read(body, reader), reader)
      },
    }
  }
  const dialect = json as Dialect
  const body = await bodies.read(incoming, bounds)
  return {
    dialect,
    ...body,
    readStore: () => reads.of(user.id, body.allocation),
    read(reader) {
      const scan = scanObject(body.bytes, dialect.scanLimits)
      dialect.names.check(scan)
      return served(dialect.read(scan, headers, reader), reader)
    },
  }
}

/** The request for a model that is actually served. */
function served(
  read: ParsedRequest | Promise<ParsedRequest>,
  { settings }: Reader,
): ParsedRequest | Promise<ParsedRequest> {
  return read instanceof Promise
    ? read.then((request) => withoutModelSuffix(request, settings))
    : withoutModelSuffix(read, settings)
}

/** Suffixes by which routers choose other providers and prices, or search the web for an extra price. */
const SUFFIXES = [':online', ':nitro', ':floor'] as const

/**
 * Removes router suffixes from the model's name and reports them as dropped. Returns the request itself if a
 * channel serves the model under the name with the suffix, or if only that model can serve it. `docs/api.md:
 * Other models and prices`.
 */
function withoutModelSuffix(request: ParsedRequest, { channels }: Settings): ParsedRequest {
  const dropped: string[] = []
  let name = request.model
  for (;;) {
    const suffix = SUFFIXES.find((one) => name.endsWith(one))
    if (suffix === undefined || channels.some(({ models }) => models.includes(name))) break
    name = name.slice(0, -suffix.length)
    dropped.unshift(suffix)
  }
  const plain = dropped.length > 0 ? request.forModel?.(name) : undefined
  return plain ? withDropped(plain, dropped) : request
}

function withDropped(request: ParsedRequest, dropped: readonly string[]): ParsedRequest {
  return {
    ...request,
    dropped,
    forModel: (name) => withDropped(request.forModel?.(name) ?? request, dropped),
  }
}
