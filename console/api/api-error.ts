/** An error response of the gateway, or a lost connection, for which `status` is 0. */
export class ApiError extends Error {
  readonly status: number
  readonly code: string
  readonly requestId: string | undefined
  /** Seconds after which the request may be sent again. */
  readonly retryAfter: number | undefined
  /** The object as it is now, if the change was refused because it was based on an older version. */
  readonly present: object | undefined

  constructor(
    message: string,
    {
      status,
      code,
      requestId,
      retryAfter,
      present,
    }: Partial<Omit<ApiError, keyof Error>> & { readonly status: number },
  ) {
    super(message)
    this.name = 'ApiError'
    this.status = status
    this.code = code ?? ''
    this.requestId = requestId
    this.retryAfter = retryAfter
    this.present = present
  }

  /** Whether the same request may succeed if it is sent again soon. */
  get isPassing(): boolean {
    return this.status === 0 || this.status === 429 || this.status >= 500
  }

  /** Whether the gateway does not know the object. The 404 of a proxy in front of it has no code. */
  get isNotFound(): boolean {
    return this.status === 404 && this.code !== ''
  }

  /**
   * The name of the request field that the gateway refused. It is read from the message: `field: expected …`,
   * `keys[0]: expected …`.
   */
  get field(): string | undefined {
    return this.status === 400 ? /^([a-z_]+)(?:[[.][^: ]*)?: /.exec(this.message)?.[1] : undefined
  }
}

/** How often a request is sent again. */
export const RETRIES = 2
/** Maximum seconds that a busy or starting gateway states as `retry-after`; those of rate limits may be longer. */
const BUSY_S = 5

/** For queries that are otherwise not repeated: a busy gateway refuses requests before it looks at them. */
export function retryWhileBusy(failures: number, error: Error): boolean {
  const waitS = error instanceof ApiError && error.isPassing ? error.retryAfter : undefined
  return waitS !== undefined && waitS <= BUSY_S && failures < RETRIES
}
