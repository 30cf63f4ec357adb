import { type ModelRetirementEvent } from '../../domain/alert.ts'
import type { ListedRetirement } from '../../domain/model-retirement.ts'
import { addAlert } from './alerts.ts'
import type { Db } from './operation.ts'

/** Returns the shutdown days of models, as upstreams state them in their model lists. */
export function modelRetirements(db: Db): Promise<ListedRetirement[]> {
  return db.selectFrom('model_ends').selectAll().orderBy('source').orderBy('model').execute()
}

/** Shutdown days that have changed in the model list of an upstream. */
interface StatedEnds {
  /** Hash of the upstream's base URL. */
  readonly source: string
  readonly nowMs: number
  /**
   * The upstream's name of each model, and the day of its shutdown; null if the upstream no longer states
   * one.
   */
  readonly ends: readonly { readonly model: string; readonly on: string | null }[]
}

/** Stores shutdown days. If a day changes, the time at which a shutdown was first known is kept. */
export async function storeModelRetirements(db: Db, { source, nowMs, ends }: StatedEnds): Promise<void> {
  for (const { model, on } of ends)
    await (on === null
      ? db.deleteFrom('model_ends').where('source', '=', source).where('model', '=', model).execute()
      : db
          .insertInto('model_ends')
          .values({ source, model, ends_on: on, known_ms: nowMs })
          .onConflict((conflict) => conflict.columns(['source', 'model']).doUpdateSet({ ends_on: on }))
          .execute())
}

/**
 * Adds an alert for each model whose shutdown has come nearer than a threshold, unless receivers were
 * informed already. Several nodes may report the same shutdown.
 */
export async function reportModelRetirements(
  db: Db,
  { nowMs, endings }: { readonly nowMs: number; readonly endings: readonly ModelRetirementEvent[] },
): Promise<void> {
  for (const { threshold, data } of endings) {
    const { model, shutdown_date: on } = data
    const told = await db
      .selectFrom('model_endings_told')
      .select(['ends_on', 'threshold'])
      .where('model', '=', model)
      .executeTakeFirst()
    if (told?.ends_on === on && told.threshold <= threshold) continue
    await db
      .insertInto('model_endings_told')
      .values({ model, ends_on: on, threshold })
      .onConflict((conflict) => conflict.column('model').doUpdateSet({ ends_on: on, threshold }))
      .execute()
    await addAlert(db, { type: 'model.ending', data }, nowMs)
  }
}
