/** Failure to fetch media; the message may be shown to the client that named the URL. */
export class MediaUnavailable extends Error {
  constructor(reason: string, options: { cause?: unknown } = {}) {
    super(reason, options)
    this.name = 'MediaUnavailable'
  }
}
