import { createTheme, type CSSVariablesResolver } from '@mantine/core'

/** Keeps Mantine from setting CSS variables; `theme.css` defines the colours. */
export const cssVariables: CSSVariablesResolver = () => ({ variables: {}, light: {}, dark: {} })

const FLOATING = { transitionProps: { duration: 120, timingFunction: 'ease-out' } }

/** Selects the text in the field of a searchable list, so that typing replaces it. */
const selectText = ({ currentTarget }: { readonly currentTarget: HTMLInputElement }): void => {
  if (!currentTarget.readOnly) currentTarget.select()
}

const selectFocused = (): void =>
  void setTimeout(() => {
    const field = document.activeElement
    if (field instanceof HTMLInputElement && field.role === 'combobox') selectText({ currentTarget: field })
  }, 0)

const SELECT = { onFocus: selectText, onClick: selectText, onOptionSubmit: selectFocused }

/**
 * Sizes and behaviour of Mantine's components, by name: importing the components would load each of them with
 * the first page.
 */
export const theme = createTheme({
  fontFamily: "system-ui, 'PingFang SC', 'Noto Sans CJK SC', 'Microsoft YaHei', sans-serif",
  fontFamilyMonospace: 'var(--font-mono)',
  fontWeights: { regular: '400', medium: '500', bold: '600' },
  fontSizes: { xs: '12px', sm: '13px', md: '14px', lg: '16px', xl: '20px' },
  lineHeights: { xs: '1.333', sm: '1.54', md: '1.43', lg: '1.5', xl: '1.4' },
  radius: { xs: '2px', sm: '4px', md: '6px', lg: '6px', xl: '6px' },
  defaultRadius: 'sm',
  spacing: { xs: '4px', sm: '8px', md: '12px', lg: '16px', xl: '24px' },
  cursorType: 'pointer',
  respectReducedMotion: true,
  components: {
    Button: { defaultProps: { size: 'sm' } },
    ActionIcon: { defaultProps: { variant: 'subtle', color: 'gray', size: 'md' } },
    InputWrapper: {
      defaultProps: { inputWrapperOrder: ['label', 'input', 'description', 'error'] },
      styles: { label: { marginBottom: 4 }, description: { marginTop: 4 }, error: { marginTop: 4 } },
    },
    Menu: { defaultProps: { ...FLOATING, radius: 'md', shadow: 'md' } },
    Modal: {
      defaultProps: { ...FLOATING, radius: 'md', shadow: 'md', padding: 'lg', closeButtonProps: {} },
    },
    Drawer: {
      defaultProps: { transitionProps: { duration: 160, timingFunction: 'ease-out' }, shadow: 'md' },
    },
    Select: { defaultProps: SELECT },
    Tabs: { defaultProps: { keepMounted: false } },
    Tooltip: { defaultProps: { openDelay: 300, withArrow: false } },
  },
})
