/** The pages of the console; `:id` is one segment. */
const PAGES =
  /^\/(?:$|(?:login|setup|keys|playground|usage|logs|models|channels|users|audit|settings|account)$|(?:keys|logs|channels|users)\/[^/]+$)/

/** URL prefix of the built files; each has the hash of its content in its name. */
export const ASSETS = '/assets/'

/** Whether a path is that of a console page. */
export function isPage(path: string): boolean {
  return PAGES.test(path)
}
