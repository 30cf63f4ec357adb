import { conservation } from './conservation.ts'
import { listTokens, tokenByKeyHash } from './find-token.ts'
import { countUsers, userByName } from './find-user.ts'
import { revealKey } from './reveal-key.ts'

/** Everything that can be asked: each reads one state of the database, whatever is written meanwhile. */
export const reads = { conservation, countUsers, listTokens, revealKey, tokenByKeyHash, userByName } as const
