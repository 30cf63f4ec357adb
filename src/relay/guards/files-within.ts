import { type FileWithin, filesWithin, type ValueKind } from '@sluice/wire/guarded-values'
import { TURN_BUDGET } from '../../limits/event-loop.ts'

/** The files of text within a value, as `filesWithin` reads them, in turns of the event loop. */
export async function readFilesWithin(value: string, kind: ValueKind): Promise<FileWithin[]> {
  const files: FileWithin[] = []
  const reading = filesWithin(value, kind)
  const step = (): IteratorResult<FileWithin | undefined, void> => reading.next()
  for (let next = await TURN_BUDGET.work(step); !next.done; next = await TURN_BUDGET.work(step))
    if (next.value) files.push(next.value)
  return files
}
