import { useTexts } from '../locales/use-texts.tsx'
import { useFormats } from './session.tsx'
import { unusedName } from './unused-name.ts'

/** The name, or its next free number: `Key of 23 Nov (2)`. */
export function unusedKeyName(base: string, taken: ReadonlySet<string>): string {
  return unusedName(base, taken, (number) => `${base} (${number})`)
}

/** The name that a key made today has unless another one is typed. */
export function useNewKeyName(): string {
  const { keys } = useTexts()
  const { day } = useFormats()
  return keys.defaultName(day(Date.now() / 1000))
}
