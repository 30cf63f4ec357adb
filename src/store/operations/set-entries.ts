import { requireVersion } from '../../domain/object-version.ts'
import type { Json } from '../../domain/json.ts'
import type { StoredSection } from '../../domain/settings.ts'
import type { Db } from './operation.ts'

/** Change of an entry; `value` undefined removes it. */
export interface EntryChange {
  readonly section: StoredSection
  readonly name: string
  readonly value: Json | undefined
}

/**
 * Sets and removes stored settings, all or none. Refuses with `changed_meanwhile` unless all `expected`
 * entries have their values.
 */
export async function setEntries(
  db: Db,
  {
    changes,
    expected = [],
  }: { readonly changes: readonly EntryChange[]; readonly expected?: readonly EntryChange[] },
): Promise<void> {
  for (const { section, name, value } of expected) {
    const row = await db
      .selectFrom('stored_settings')
      .select('value')
      .where('section', '=', section)
      .where('name', '=', name)
      .executeTakeFirst()
    requireVersion(value === undefined ? '' : JSON.stringify(value), row?.value ?? '')
  }
  for (const { section, name, value } of changes) {
    if (value === undefined) {
      await db.deleteFrom('stored_settings').where('section', '=', section).where('name', '=', name).execute()
      continue
    }
    const text = JSON.stringify(value)
    await db
      .insertInto('stored_settings')
      .values({ section, name, value: text })
      .onConflict((conflict) => conflict.columns(['section', 'name']).doUpdateSet({ value: text }))
      .execute()
  }
}
