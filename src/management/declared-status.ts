import type { TOKEN_STATUS, Token } from '../domain/token.ts'
import type { User } from '../domain/user.ts'
import { GatewayError } from '../errors.ts'
import type { ManagementParts } from './parts.ts'

type Seeds = Pick<ManagementParts, 'seeds'>

/** Refuses to enable or disable a token whose status gateway.yaml declares otherwise: the next reading would undo it. */
export function refuseDeclared(
  parts: Seeds,
  user: User,
  { name }: Token,
  status: typeof TOKEN_STATUS.enabled | typeof TOKEN_STATUS.disabled,
): void {
  const declared = declaredStatus(parts, user, name)
  if (declared !== undefined && declared !== status) refuse(name)
}

/** Refuses to rename a token whose status gateway.yaml declares: under another name it would be out of its reach. */
export function refuseDeclaredName(parts: Seeds, user: User, { name }: Token, next: string): void {
  if (next !== name && declaredStatus(parts, user, name) !== undefined) refuse(name)
}

function declaredStatus({ seeds }: Seeds, { username }: User, name: string): 1 | 2 | undefined {
  const seed = seeds().find((user) => user.username === username)
  return seed?.tokens.find((token) => token.name === name)?.status
}

function refuse(name: string): never {
  throw new GatewayError(
    'invalid_request',
    `the status of the token "${name}" is declared in gateway.yaml, and applied at every reading: change it there`,
  )
}
