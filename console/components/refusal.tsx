import { useTexts } from '../locales/use-texts.tsx'
import { reasonOf } from './notify.tsx'
import { Problem } from './problem.tsx'

/** Why an action was refused; nothing without an error. */
export function Refusal({ error }: { readonly error: unknown }) {
  const texts = useTexts()
  if (error === undefined || error === null) return null
  const { message } = error as { readonly message?: string }
  return (
    <Problem text={reasonOf(error, texts)}>
      <details>
        <summary>{texts.common.details}</summary>
        {message}
      </details>
    </Problem>
  )
}
