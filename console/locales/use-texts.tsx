import { createContext, type ReactNode, useContext } from 'react'
import type { Language } from '../components/preferences.ts'
import type { Texts } from './en.ts'

export type { Texts } from './en.ts'

const TextsContext = createContext<Texts | undefined>(undefined)

/** Loads the texts of a language, whose code is in a separate file. */
export async function loadTexts(language: Language): Promise<Texts> {
  const { texts } = await (language === 'zh' ? import('./zh.ts') : import('./en.ts'))
  return texts
}

/** Makes texts available to the components below. */
export function TextsProvider({ texts, children }: { readonly texts: Texts; readonly children: ReactNode }) {
  return <TextsContext value={texts}>{children}</TextsContext>
}

/** The texts in the chosen language. */
export function useTexts(): Texts {
  const texts = useContext(TextsContext)
  if (!texts) throw new Error('no texts')
  return texts
}
