/** Paths of the console pages. An id in a path is one segment. */
const PAGES =
  /^\/(?:$|(?:login|invite|setup|keys|playground|usage|live|what-if|logs|sessions|batches|models|channels|routing|guards|tools|groups|users|user-keys|audit|settings|import|account)$|(?:keys|logs|sessions|batches|channels|guards|users)\/[^/]+$|users\/[^/]+\/keys\/[^/]+$)/

/** Whether a path belongs to a page of the console. */
export function isConsolePage(path: string): boolean {
  return PAGES.test(path)
}
