import { ApiError } from '../api/api-error.ts'
import { useTexts } from '../locales/use-texts.tsx'
import { translatedErrorText, gatewayErrorText } from './notify.tsx'
import { ErrorAlert } from './error-alert.tsx'

/**
 * Shows why an action was refused, in the gateway's words; ids are hidden behind a button. Shows nothing
 * without an error.
 */
export function RefusalMessage({ error }: { readonly error: unknown }) {
  const texts = useTexts()
  if (error === undefined || error === null) return null
  const sentence = gatewayErrorText(error)
  const requestId = error instanceof ApiError ? error.requestId : undefined
  return (
    <ErrorAlert text={translatedErrorText(error, texts)}>
      {sentence !== undefined && <p>{sentence}</p>}
      {requestId !== undefined && (
        <details>
          <summary>{texts.common.details}</summary>
          <p>{texts.common.requestId(requestId)}</p>
        </details>
      )}
    </ErrorAlert>
  )
}
