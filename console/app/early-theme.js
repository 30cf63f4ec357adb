// Sets the colour scheme before the first paint.
const chosen = localStorage.getItem('theme')
const dark = chosen === 'dark' || (chosen !== 'light' && matchMedia('(prefers-color-scheme: dark)').matches)
document.documentElement.dataset.theme = dark ? 'dark' : 'light'
document.documentElement.dataset.mantineColorScheme = document.documentElement.dataset.theme
