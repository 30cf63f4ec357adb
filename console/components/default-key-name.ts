import { useTexts } from '../locales/use-texts.tsx'
import { useFormatters } from './session.tsx'
import { unusedName } from './unused-name.ts'

/** The name, or if it is taken, the name with the next free number: `Key of 23 Nov (2)`. */
export function unusedKeyName(base: string, taken: ReadonlySet<string>): string {
  return unusedName(base, taken, (number) => `${base} (${number})`)
}

/** The suggested name of a key that is created today. */
export function useDefaultKeyName(): string {
  const { keys } = useTexts()
  const { day } = useFormatters()
  return keys.defaultName(day(Date.now() / 1000))
}
