import { ApiError } from './api-error.ts'
import { basePath } from './base-path.ts'

/** Callbacks for events that concern the whole console, not only one request. */
interface Surroundings {
  /** Resolves when the user has signed in again; the request is then repeated. */
  readonly signInAgain: () => Promise<void>
  /** Called when the gateway does not respond. */
  readonly connectionLost: () => void
  /** Called when the account of the session was disabled. */
  readonly userDisabled: () => void
}

type Method = 'GET' | 'POST' | 'PUT' | 'DELETE'

let surroundings: Surroundings | undefined
/** The number of sessions that have replaced another one in this page. */
let replaced = 0
/** Settles when the replacement of the session that is under way has ended. */
let replacing: Promise<void> | undefined

/** Sets the callbacks for ended sessions and lost connections. */
export function setClientCallbacks(given: Surroundings): void {
  surroundings = given
}

/**
 * Sends a request to the API and returns `data` of its JSON response; a file is sent unchanged. If the
 * session has ended, waits for a new sign-in. Throws `ApiError`.
 */
export async function request<Data>(method: Method, path: string, body?: object): Promise<Data> {
  return repeatInNewSession(() => send<Data>(method, path, body))
}

/** Does this, and once more in a new session if it was refused because the session has ended. */
export async function repeatInNewSession<Result>(attempt: () => Promise<Result>): Promise<Result> {
  const since = replaced
  try {
    return await attempt()
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 401 || !surroundings) throw error
    await newSession(since, surroundings)
    return attempt()
  }
}

/**
 * Does what ends the session and starts another one. Requests that are refused meanwhile wait for it, so that the user is not asked to sign
 * in again.
 */
export async function replaceSession(work: () => Promise<void>): Promise<void> {
  const done = work().then(() => {
    replaced += 1
  })
  const settled = done.then(
    () => undefined,
    () => undefined,
  )
  replacing = settled
  void settled.then(() => {
    replacing = undefined
  })
  return done
}

/** Resolves when there is a session that began after a request was sent: a replacement, or that of a new sign-in. */
async function newSession(since: number, { signInAgain }: Surroundings): Promise<void> {
  await replacing
  if (replaced === since) await signInAgain()
}

/** A value with the entity tag (ETag) of its response. */
export interface WithEntityTag<Data> {
  readonly data: Data
  readonly tag: string | null
}

/**
 * Sends a GET request to the API. Returns `last`, an earlier response, if the gateway responds that nothing
 * has changed since that response.
 */
export async function requestIfChanged<Data>(
  path: string,
  last?: WithEntityTag<Data>,
): Promise<WithEntityTag<Data>> {
  const since = replaced
  const headers: Readonly<Record<string, string>> = last?.tag ? { 'if-none-match': last.tag } : {}
  const response = await reach('GET', path, undefined, { headers })
  if (response.status === 304 && last) return last
  const answer = parsed(await response.text().catch(() => ''))
  if (response.ok) return { data: answer?.['data'] as Data, tag: response.headers.get('etag') }
  if (response.status !== 401 || !surroundings) throw refusalOf(response, answer)
  await newSession(since, surroundings)
  return requestIfChanged(path, last)
}

/**
 * Sends a request to the API and returns `data` of its JSON response. Unlike `request`, it throws `ApiError`
 * for a status 401 instead of waiting for a new sign-in.
 */
export async function send<Data>(method: Method, path: string, body?: object): Promise<Data> {
  const answer = await requestWholeBody<{ readonly data: Data }>(method, path, body)
  return answer.data
}

/**
 * Sends a request to the API and returns the whole JSON response, for endpoints whose response has its fields
 * beside `success` and `message` and not within `data`. Throws `ApiError`.
 */
export async function requestWholeBody<Answer>(method: Method, path: string, body?: object): Promise<Answer> {
  const response = await reach(method, path, body)
  const text = await response.text().catch(() => '')
  const answer = parsed(text)
  if (response.ok && answer?.['success'] !== false) return (answer ?? {}) as Answer
  throw refusalOf(response, answer)
}

function refusalOf(response: Response, answer: Record<string, unknown> | undefined): ApiError {
  const { message, code, data } = (answer ?? {}) as Partial<Record<'message' | 'code' | 'data', unknown>>
  if (code === 'user_disabled') surroundings?.userDisabled()
  const retryAfter = Number(response.headers.get('retry-after') ?? Number.NaN)
  return new ApiError(typeof message === 'string' ? message : `HTTP ${response.status}`, {
    status: response.status,
    code: typeof code === 'string' ? code : '',
    requestId: response.headers.get('x-request-id') ?? undefined,
    retryAfter: Number.isFinite(retryAfter) ? retryAfter : undefined,
    present: typeof data === 'object' && data !== null ? data : undefined,
  })
}

/**
 * Opens a stream of server-sent events, beginning after the event with the id `lastId`. Throws `ApiError`.
 */
export async function openEventStream(
  path: string,
  lastId: string | undefined,
  signal: AbortSignal,
): Promise<Response> {
  const since = replaced
  const headers = { accept: 'text/event-stream', ...(lastId !== undefined && { 'last-event-id': lastId }) }
  const response = await reach('GET', path, undefined, { headers, signal })
  if (response.ok) return response
  if (response.status === 401 && surroundings) {
    await newSession(since, surroundings)
    return openEventStream(path, lastId, signal)
  }
  throw refusalOf(response, parsed(await response.text().catch(() => '')))
}

/** Sends a request and returns its response as soon as the headers arrive. An error status does not throw. */
export async function postForResponse(path: string, body: object, options: OpenOptions): Promise<Response> {
  const since = replaced
  const response = await reach('POST', path, body, options)
  if (response.status !== 401 || !surroundings) return response
  const { success } = parsed(await response.clone().text()) ?? {}
  // A 401 with `success: false` means that the session has ended; other 401s come from the model endpoint.
  if (success !== false) return response
  await newSession(since, surroundings)
  return reach('POST', path, body, options)
}

/** The headers of a request, and the signal that aborts it. */
interface OpenOptions {
  readonly headers?: Readonly<Record<string, string>>
  readonly signal?: AbortSignal
}

/**
 * Sends a request. A read whose connection fails is sent once more: the server may have closed an idle
 * connection at the moment in which the browser used it.
 */
async function reach(
  method: Method,
  path: string,
  body: object | undefined,
  { headers, signal }: OpenOptions = {},
): Promise<Response> {
  const isFile = body instanceof Blob
  const send = (): Promise<Response> =>
    fetch(basePath + path, {
      method,
      cache: 'no-store',
      credentials: 'same-origin',
      ...(signal && { signal }),
      headers: {
        ...(body && { 'content-type': isFile ? 'application/octet-stream' : 'application/json' }),
        ...headers,
      },
      ...(body && { body: isFile ? body : JSON.stringify(body) }),
    })
  try {
    return await (method === 'GET'
      ? send().catch((error) => (signal?.aborted ? Promise.reject(error) : send()))
      : send())
  } catch (error) {
    if (signal?.aborted) throw error
    surroundings?.connectionLost()
    throw new ApiError(error instanceof Error ? error.message : String(error), { status: 0 })
  }
}

function parsed(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined
  } catch {
    return undefined
  }
}

/** The value of a query parameter, or several values. */
export type QueryValue = string | number | undefined | readonly string[]

/**
 * A query string with the given parameters. An undefined parameter is omitted; one with several values is
 * repeated.
 */
export function queryString(fields: Readonly<Record<string, QueryValue>>): string {
  const given = Object.entries(fields)
    .flatMap(([name, value]) => (Array.isArray(value) ? value : [value]).map((one) => [name, one] as const))
    .filter(([, value]) => value !== undefined && value !== '')
  const text = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString()
  return text === '' ? '' : `?${text}`
}
