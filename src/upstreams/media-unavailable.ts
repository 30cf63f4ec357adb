/** Why media could not be had, in words that may be told to whoever named the URL. */
export class MediaUnavailable extends Error {
  constructor(reason: string, options: { cause?: unknown } = {}) {
    super(reason, options)
    this.name = 'MediaUnavailable'
  }
}
