import { TOKEN } from '../../domain/records/token.ts'
import { undeletedTokens } from '../account-rows.ts'
import type { Db } from './operation.ts'

/** Whether an API key is restricted to the toolset of this name. */
export async function isToolsetNamed(db: Db, { name }: { readonly name: string }): Promise<boolean> {
  const rows = await undeletedTokens(db)
    .select('toolsets')
    .where('toolsets', '!=', TOKEN.fields.toolsets.type.encode([]))
    .distinct()
    .execute()
  return rows.some(({ toolsets }) => TOKEN.fields.toolsets.type.decode(toolsets).includes(name))
}
