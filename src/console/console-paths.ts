/** The pages of the console; `:id` is one segment. */
const PAGES =
  /^\/(?:$|(?:login|setup|keys|playground|usage|logs|models|channels|users|audit|settings|account)$|(?:keys|logs|channels|users)\/[^/]+$)/

/** The folder of the built files in URLs, each below the hash of its content. */
export const ASSETS = '/assets/'

/** Whether a path is that of a page of the console. */
export function isPage(path: string): boolean {
  return PAGES.test(path)
}
