import process from 'node:process'
import { parentPort, workerData } from 'node:worker_threads'
import type { UserSeed } from '../domain/seed.ts'
import { ConfigError } from './diagnostics.ts'
import { readFile } from './file-reading.ts'
import { packNode } from './packed-node.ts'
import { builtInPrices } from './prices/built-in-prices.ts'
import type { FromReadingThread, ToReadingThread } from './reading-thread.ts'

/** Users and tokens in one message: the main thread restores them in a few milliseconds. */
const MAX_ACCOUNTS = 500

/** Reads the configuration file, and posts it in messages that the main thread takes without a pause. */
function postReading(
  { environment, given }: ToReadingThread,
  post: (message: FromReadingThread) => void,
): void {
  try {
    const { content, tree, ...rest } = readFile(environment, builtInPrices(), given)
    const { users, ...others } = content
    let part: UserSeed[] = []
    let accounts = 0
    for (const user of users) {
      part.push(user)
      accounts += 1 + user.tokens.length
      if (accounts < MAX_ACCOUNTS) continue
      post({ kind: 'users', users: part })
      part = []
      accounts = 0
    }
    post({ kind: 'users', users: part })
    post({ kind: 'read', content: others, tree: packNode(tree), ...rest })
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    post({ kind: 'refused', diagnostics: error.diagnostics })
  }
}

// The YAML library looks for a variable at each token: in the real environment, a seventh of its time.
process.env = {}
postReading(workerData as ToReadingThread, (message) => parentPort?.postMessage(message))
