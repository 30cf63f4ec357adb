import { Button, Group } from '@mantine/core'
import { notifications } from '@mantine/notifications'
import { ApiError } from '../api/api-error.ts'
import type { Texts } from '../locales/use-texts.tsx'

/** Shows a message that an action was done, with an undo button if `undo` is given. */
export function showNotice(text: string, undo?: { readonly label: string; readonly run: () => void }): void {
  const id = notifications.show({
    role: 'status',
    withBorder: true,
    autoClose: undo ? 8000 : 4000,
    message: undo ? (
      <Group justify="space-between" wrap="nowrap" gap={4}>
        {text}
        <Button
          variant="subtle"
          flex="none"
          px={8}
          onClick={() => {
            notifications.hide(id)
            undo.run()
          }}
        >
          {undo.label}
        </Button>
      </Group>
    ) : (
      text
    ),
  })
}

/** Shows a message why an action failed; `failed` says which one it was. */
export function showFailure(error: unknown, texts: Texts, failed?: string): void {
  const cause = translatedErrorText(error, texts)
  const detail = gatewayErrorText(error) ?? ''
  notifications.show({
    role: 'alert',
    color: 'red',
    withBorder: true,
    autoClose: 12_000,
    title: failed ?? cause,
    message: failed === undefined ? detail : `${cause}${texts.common.betweenSentences}${detail}`,
  })
}

/** An error in the user's language. */
export function translatedErrorText(error: unknown, { errors }: Texts): string {
  const codes: Readonly<Record<string, string>> = errors.byCode
  if (isWithoutAnswer(error)) return errors.noAnswer
  return (error instanceof ApiError ? codes[error.code] : undefined) ?? errors.notDone
}

/** The gateway's own message about an error; undefined if the gateway did not respond. */
export function gatewayErrorText(error: unknown): string | undefined {
  if (isWithoutAnswer(error)) return undefined
  return error instanceof Error ? error.message : String(error)
}

/**
 * Whether a failed request may have had an effect: no response came, or it did not come from the gateway
 * itself.
 */
function isWithoutAnswer(error: unknown): boolean {
  return error instanceof ApiError && (error.status === 0 || (error.status >= 500 && error.code === ''))
}
