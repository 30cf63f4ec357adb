import type { z } from 'zod'
import { termFields } from '../call-terms.ts'
import { OPERATOR } from '../authority.ts'
import type { ManagementParts } from '../parts.ts'
import { readInput } from '../read-input.ts'
import { changeToken } from './change-token.ts'
import { anyTokenInput, findToken } from './find-token.ts'
import type { TokenObject } from './token-object.ts'

const { budget, budget_period } = termFields

const INPUT = anyTokenInput.extend({ budget, budget_period })

/** Sets the budget of a token of any user, as an operator. */
export async function budgetToken(
  parts: ManagementParts,
  given: z.input<typeof INPUT>,
): Promise<TokenObject> {
  const { id, ...fields } = readInput(INPUT, given)
  const { user_id: user } = await findToken(parts.store, { id })
  return changeToken(parts, { user, id, ...fields }, OPERATOR)
}
