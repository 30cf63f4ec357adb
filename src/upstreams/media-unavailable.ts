/** Failure to fetch media. The message may be shown to the client that gave the URL. */
export class MediaUnavailable extends Error {
  constructor(reason: string, options: { cause?: unknown } = {}) {
    super(reason, options)
    this.name = 'MediaUnavailable'
  }
}
