/** Matches the paths of pages that may be opened after a sign-in. */
const OWN =
  /^\/(?:$|[?#]|(?:setup|keys|playground|usage|logs|models|channels|users|audit|settings|account)(?:\/[\w-]+)?(?:[?#]|$))/

/** Whether a path with its query is one of the console's own pages. */
export function isConsolePath(path: string): boolean {
  return OWN.test(path)
}
