import type { TOKEN_STATUS } from '../domain/token.ts'
import type { User } from '../domain/user.ts'
import { GatewayError } from '../errors.ts'
import type { KeyedToken } from '../store/operations/keyed-tokens.ts'
import type { ManagementParts } from './parts.ts'

type Seeds = Pick<ManagementParts, 'seeds'>

/** Refuses to enable or disable a token whose status gateway.yaml declares otherwise: the next reading would undo it. */
export function refuseDeclared(
  parts: Seeds,
  user: User,
  found: KeyedToken,
  status: typeof TOKEN_STATUS.enabled | typeof TOKEN_STATUS.disabled,
): void {
  const declared = declaredStatus(parts, user, found)
  if (declared !== undefined && declared !== status) refuse(found)
}

/** Refuses to rename a token whose status gateway.yaml declares: under another name it may be out of its reach. */
export function refuseDeclaredName(parts: Seeds, user: User, found: KeyedToken, next: string): void {
  if (next !== found.token.name && declaredStatus(parts, user, found) !== undefined) refuse(found)
}

function declaredStatus({ seeds }: Seeds, { username }: User, { token, key }: KeyedToken): 1 | 2 | undefined {
  const seed = seeds().find((user) => user.username === username)
  return seed?.tokens.find((declared) => declared.name === token.name || declared.key === key)?.status
}

function refuse({ token: { name } }: KeyedToken): never {
  throw new GatewayError(
    'invalid_request',
    `the status of the token "${name}" is declared in gateway.yaml, and applied at every reading: change it there`,
  )
}
