/** Thrown if a media file cannot be fetched. The message may be shown to the client that gave the URL. */
export class MediaUnavailable extends Error {
  constructor(reason: string, options: { cause?: unknown } = {}) {
    super(reason, options)
    this.name = 'MediaUnavailable'
  }
}
