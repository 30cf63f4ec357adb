import type { DeclaredUser } from '../domain/records/user.ts'
import { serve } from '../ipc/serve.ts'
import { readFile } from './read-file.ts'
import { packNode } from './yaml-node.ts'
import { builtInPrices } from './built-in-prices.ts'
import { CONFIG_ERRORS } from './diagnostics.ts'
import type { ReadingRequests } from './reading-thread.ts'

/**
 * Maximum number of users and tokens in one message; the main thread needs a few milliseconds to receive so
 * many.
 */
const MAX_ACCOUNTS = 500

let parts = partsOf([])

serve<ReadingRequests>(
  {
    read(environment) {
      const { content, tree, priceFile, ...rest } = readFile(environment, builtInPrices())
      const { users, ...others } = content
      parts = partsOf(users)
      return {
        ...rest,
        content: others,
        tree: packNode(tree),
        priceFile: priceFile && { ...priceFile, tree: packNode(priceFile.tree) },
      }
    },
    nextUsers: () => parts.next().value ?? [],
  },
  { errors: CONFIG_ERRORS },
)

function* partsOf(users: readonly DeclaredUser[]): Generator<readonly DeclaredUser[], undefined> {
  let part: DeclaredUser[] = []
  let accounts = 0
  for (const user of users) {
    part.push(user)
    accounts += 1 + user.tokens.length
    if (accounts < MAX_ACCOUNTS) continue
    yield part
    part = []
    accounts = 0
  }
  if (part.length > 0) yield part
  return undefined
}
