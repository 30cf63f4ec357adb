import { isConsolePage } from '../../src/domain/console-pages.ts'

/** Pages that show themselves to those who have not signed in. */
const OPEN = /^\/(?:login|invite)$/

/** Whether a path with its query is one of the console's own pages, which may be opened after a sign-in. */
export function isConsolePath(path: string): boolean {
  const [page = ''] = path.split(/[?#]/, 1)
  return isConsolePage(page) && !OPEN.test(page)
}
