import type { Generated } from 'kysely'
import type { Fields, Filled, Row } from '../domain/records/record.ts'

type ColumnsOf<F extends Fields> = Row<Omit<F, Filled<F>>> & {
  [Name in keyof Row<Pick<F, Filled<F>>>]: Generated<Row<Pick<F, Filled<F>>>[Name]>
}

/** Table of a record, for statements. The database fills in the id, and columns that have a default. */
export type TableOf<R> = R extends {
  readonly fields: infer F extends Fields
  readonly parts: infer P extends Fields
}
  ? ColumnsOf<F> & ColumnsOf<P>
  : never
