import { z } from 'zod'
import type { Settings } from '../../domain/settings.ts'
import { withoutThinkingSuffix } from '../../protocols/messages/index.ts'
import { findUser } from '../users/find-user.ts'
import type { ManagementParts } from '../parts.ts'
import { readInput, userField } from '../read-input.ts'

const INPUT = z.object({ user: userField, name: z.string(), models: z.array(z.string()) })

/**
 * Warnings about a token that is valid but probably not intended: another token of its user has the name, or
 * no channel serves a model that it is limited to.
 */
export async function tokenWarnings(
  { store, settings }: ManagementParts,
  given: z.input<typeof INPUT>,
): Promise<string[]> {
  const { user: idOrName, name, models } = readInput(INPUT, given)
  const user = await findUser(store, idOrName)
  const namesakes = (await store.read('keyedTokens', { userId: user.id })).filter(
    ({ token }) => token.name === name,
  )
  const served = servedModels(settings())
  const unknown = models.filter(
    (model) => !served.has(model) && !served.has(withoutThinkingSuffix(model) ?? model),
  )
  return [
    ...namesakes.map(
      ({ token: { id } }) =>
        `${user.username} has a key named ${JSON.stringify(name)} already, with the id ${id}`,
    ),
    ...unknown.map((model) => `no channel serves a model named ${JSON.stringify(model)}`),
  ]
}

function servedModels({ channels }: Settings): ReadonlySet<string> {
  return new Set(channels.flatMap(({ models }) => models))
}
