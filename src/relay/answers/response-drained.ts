import type { Response } from '@sluice/http1'

/** Resolves when the client has read what was written, or has disconnected. */
export function responseDrained(response: Response): Promise<void> {
  return new Promise((resolve) => {
    const unwatch = response.onClosed(resolve)
    response.whenDrained(() => {
      unwatch()
      resolve()
    })
  })
}
